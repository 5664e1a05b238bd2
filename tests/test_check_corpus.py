"""Every planted fault is found and placed; models without planted faults hear nothing but what is true of them."""

from __future__ import annotations

import warnings

import pytest

import oneblock
from check_corpus.hosts import HOSTS
from check_corpus.mutants import MUTANTS
from check_corpus.plant import Mutant, seeded
from oneblock.check import check
from oneblock.cli.tiny import tiny
from oneblock.zoo import FAMILIES


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: f"{one.host}: {one.name}")
def test_a_planted_fault_is_found_and_placed(mutant: Mutant) -> None:
    report = check(seeded(mutant.make), only=[mutant.check], **mutant.options)
    found = [fault for fault in report.faults if fault.name == mutant.fault]
    assert found, [fault.message() for fault in report.faults] + [one.reason for one in report.skipped]
    if mutant.module is not None:
        right = (mutant.module,) if isinstance(mutant.module, str) else mutant.module
        assert found[0].where.module in right


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: f"{one.host}: {one.name}")
def test_the_host_lacks_the_fault(mutant: Mutant) -> None:
    host = HOSTS[mutant.host]
    options = dict(host.options) | mutant.options
    report = check(seeded(host.make), only=[mutant.check], **options)
    assert mutant.fault not in {fault.name for fault in report.faults}


@pytest.mark.parametrize("name", FAMILIES)
def test_nothing_is_said_of_our_families(name: str) -> None:
    report = check(seeded(lambda: oneblock.build(tiny(name, 97))))
    assert [fault.message() for fault in report.faults] == []
    assert [one.reason for one in report.skipped if one.reason.startswith("could not be asked")] == []


@pytest.mark.parametrize("name", HOSTS)
def test_of_a_host_only_what_is_true_is_said(name: str) -> None:
    host = HOSTS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = check(seeded(host.make), **dict(host.options))
    assert report.kind == host.kind
    assert {(fault.name, fault.where.module) for fault in report.faults} == host.true
