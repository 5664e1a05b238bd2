"""Beam search against brute force, against greedy search, and one sentence at a time, on tables of random numbers."""

import itertools
import math

import pytest
import torch

from oneblock.generate import Hypothesis, beam_search, greedy_search
from oneblock.generate.largest import largest

EOS = 1


class Table:
    """A model that is a table: the logits after a prefix stand in row (sentence, number of the prefix)."""

    def __init__(self, logits, vocab):
        self.logits, self.vocab = logits, vocab  # (sentences, prefixes, vocab)
        self.sentence = torch.arange(len(logits))
        self.node = None
        self.rows = []

    def __call__(self, tokens):
        start = self.node is None
        self.node = torch.zeros_like(tokens) if start else self.node * self.vocab + tokens + 1
        self.rows.append(len(tokens))
        return self.logits[self.sentence, self.node]

    def reorder(self, rows, sentences):
        if sentences is not None:
            assert (self.sentence[rows].unique() == self.sentence.unique()[sentences]).all()
        self.sentence, self.node = self.sentence[rows], self.node[rows]


class Steps:
    """A model that only knows which step it is: (sentences, steps, vocab)."""

    def __init__(self, logits):
        self.logits, self.sentence, self.step, self.rows = logits, torch.arange(len(logits)), -1, []

    def __call__(self, tokens):
        self.step += 1
        self.rows.append(len(tokens))
        return self.logits[self.sentence, self.step]

    def reorder(self, rows, _):
        self.sentence = self.sentence[rows]


def table(seed, sentences=1, vocab=4, length=4):
    generator = torch.Generator().manual_seed(seed)
    prefixes = sum(vocab**i for i in range(length))
    return 2 * torch.randn(sentences, prefixes, vocab, generator=generator)


def every_sentence(logits, length, alpha):
    """All finished sentences and all of `length` tokens, with their scores, best first: plain Python."""
    logprob = logits.double().log_softmax(-1).tolist()
    vocab = len(logprob[0])
    found = []
    for size in range(1, length + 1):
        for tokens in itertools.product(range(vocab), repeat=size):
            if EOS in tokens[:-1] or (tokens[-1] != EOS and size < length):
                continue
            node, total = 0, 0.0
            for token in tokens:
                total += logprob[node][token]
                node = node * vocab + token + 1
            found.append((total / size**alpha, tokens))
    return sorted(found, reverse=True)


def greedy(logits, length):
    """Greedy search in plain Python."""
    tokens, total = [], 0.0
    for row in logits[:length].log_softmax(-1):
        tokens.append(int(row.argmax()))
        total += float(row.max())
        if tokens[-1] == EOS:
            break
    return tuple(tokens), total


@pytest.mark.parametrize("alpha", [-1, 0, 0.6, 1, 2])
def test_B44_a_wide_beam_is_brute_force_whatever_the_penalty(alpha):
    tables = torch.cat([table(seed) for seed in range(100)])
    options = {"start": 0, "eos": EOS, "beam": 64, "max_length": 4, "length_penalty": alpha}
    one = beam_search(Table(tables, 4), 100, n_best=1, **options)
    five = beam_search(Table(tables, 4), 100, n_best=5, **options)
    for logits, first, best in zip(tables, one, five, strict=True):
        expected = every_sentence(logits, 4, alpha)[:5]
        assert [h.tokens for h in best] == [tokens for _, tokens in expected]
        assert [h.score for h in best] == pytest.approx([score for score, _ in expected], abs=1e-5)
        assert first == best[:1]


@pytest.mark.parametrize("alpha", [-1, 0, 0.6, 1, 2])
@pytest.mark.parametrize("beam", [2, 3, 5])
def test_B44_never_gives_what_searching_to_the_end_gives(alpha, beam):
    tables = table(7, sentences=200, length=6)
    options = {"start": 0, "eos": EOS, "beam": beam, "max_length": 6, "length_penalty": alpha}
    stepper, patient = Table(tables, 4), Table(tables, 4)
    found = beam_search(stepper, 200, **options)
    # as many wanted as there are beams: the pool's last place is what must be beaten
    assert [h[0] for h in beam_search(patient, 200, n_best=beam, **options)] == [h[0] for h in found]
    assert sum(stepper.rows) <= sum(patient.rows)


def test_B44_the_heuristic_and_early_stop_lose_what_never_finds():
    # the end at once has probability 0.5, "2 end" 0.3, "0 0 0 end" 0.2: as means, -0.69, -0.60 and -0.40
    logits = torch.full((1, 1 + 4 + 16 + 64, 4), -20.0)
    logits[0, 0] = torch.tensor([0.2, 0.5, 0.3, 1e-9]).log()
    for node, token in ((3, EOS), (1, 0), (5, 0), (21, EOS)):  # after 2, after 0, after 0 0, after 0 0 0
        logits[0, node, token] = 0
    options = {"start": 0, "eos": EOS, "beam": 2, "max_length": 4, "length_penalty": 1.0}
    best, calls = {}, {}
    for rule in ("never", False, True):
        stepper = Table(logits, 4)
        best[rule] = beam_search(stepper, 1, early_stopping=rule, **options)[0][0]
        calls[rule] = len(stepper.rows)
    assert best["never"].tokens == (0, 0, 0, EOS)
    assert best["never"].score == pytest.approx(math.log(0.2) / 4, abs=1e-4)
    assert best[False].tokens == best[True].tokens == (2, EOS)
    assert (calls["never"], calls[False], calls[True]) == (4, 2, 2)
    logits[0, 0] = torch.tensor([0.3, 0.5, 0.2, 1e-9]).log()  # now "0 0" has a better mean than "2 end"
    assert beam_search(Table(logits, 4), 1, early_stopping=False, **options)[0][0].tokens == (0, 0, 0, EOS)
    assert beam_search(Table(logits, 4), 1, early_stopping=True, **options)[0][0].tokens == (EOS,)


def test_the_three_stopping_rules_work_less_in_the_order_never_false_true():
    tables = table(3, sentences=100, vocab=5, length=6)
    work = []
    for rule in ("never", False, True):
        stepper = Table(tables, 5)
        beam_search(
            stepper, 100, start=0, eos=EOS, beam=3, n_best=3, max_length=6, length_penalty=2.0, early_stopping=rule
        )
        work.append(sum(stepper.rows))
    assert work[0] > work[1] > work[2]


def test_B47_beam_1_is_greedy_in_tokens_and_score():
    tables = torch.randn(1000, 6, 7, generator=torch.Generator().manual_seed(0))
    for rule in ("never", False, True):
        found = beam_search(Steps(tables), 1000, start=0, eos=EOS, beam=1, max_length=6, early_stopping=rule)
        for logits, best in zip(tables, found, strict=True):
            tokens, total = greedy(logits, 6)
            assert best[0].tokens == tokens
            assert best[0].logprob == pytest.approx(total, abs=1e-5)
            assert best[0].score == pytest.approx(total / len(tokens), abs=1e-5)
    assert greedy_search(Steps(tables), 1000, start=0, eos=EOS, max_length=6) == [best[0] for best in found]


def test_B43_the_length_counts_new_tokens_only():
    step = torch.full((1, 10, 50_000), 0.0).double()  # every token has log-probability -log(50,000) = -10.82
    for best in beam_search(Steps(step), 1, start=0, eos=EOS, beam=4, n_best=4, max_length=10)[0]:
        assert best.score == pytest.approx(-math.log(50_000), abs=1e-4)
        assert best.logprob == pytest.approx(-math.log(50_000) * len(best.tokens), abs=1e-3)


def test_B46_one_length_for_penalty_limit_and_result():
    never_ends = torch.zeros(1, 9, 4)
    never_ends[:, :, EOS] = -1e4
    never_ends[:, :, 2] = 1
    cut = beam_search(Steps(never_ends), 1, start=0, eos=EOS, beam=2, max_length=3)[0][0]
    assert (cut.tokens, cut.finished) == ((2, 2, 2), False)
    assert cut.score == pytest.approx(cut.logprob / 3)
    never_ends[:, 2, EOS] = 20
    ended = beam_search(Steps(never_ends), 1, start=0, eos=EOS, beam=2, max_length=3)[0][0]
    assert (ended.tokens, ended.finished) == ((2, 2, EOS), True)
    assert ended.score == pytest.approx(ended.logprob / 3)


def test_max_length_may_differ_between_sentences_and_may_be_zero():
    never_ends = torch.zeros(4, 9, 4)
    never_ends[:, :, EOS] = -1e4
    limits = torch.tensor([3, 0, 1, 5])
    stepper = Steps(never_ends)
    found = beam_search(stepper, 4, start=0, eos=EOS, beam=2, max_length=limits)
    assert [len(best[0].tokens) for best in found] == [3, 0, 1, 5]
    assert found[1] == [Hypothesis((), 0.0, 0.0, finished=False)]
    assert stepper.rows == [4, 4, 4, 2, 2]  # one row a sentence, then two; who has ended leaves
    assert beam_search(Steps(never_ends), 0, start=0, eos=EOS, max_length=3) == []


@pytest.mark.parametrize("rule", ["never", False, True])
@pytest.mark.parametrize("alpha", [-1, 0.6, 1])
@pytest.mark.parametrize("beam", [1, 3, 9])
def test_a_batch_gives_what_one_by_one_gives(rule, alpha, beam):
    tables = table(11, sentences=60, vocab=5, length=6)
    limits = torch.randint(1, 7, (60,), generator=torch.Generator().manual_seed(1))
    options = {"start": 0, "eos": EOS, "beam": beam, "n_best": beam, "length_penalty": alpha, "early_stopping": rule}
    together = beam_search(Table(tables, 5), 60, max_length=limits, **options)
    alone = [beam_search(Table(tables[i : i + 1], 5), 1, max_length=int(limits[i]), **options)[0] for i in range(60)]
    assert together == alone


def test_finished_sentences_leave_the_batch():
    logits = torch.zeros(3, 6, 5)
    for sentence, end in enumerate((1, 3, 5)):
        logits[sentence, end, EOS] = 30
    logits[:, :, 3] += 9
    stepper = Steps(logits)
    found = beam_search(stepper, 3, start=0, eos=EOS, beam=2, max_length=6, early_stopping=True)
    assert [len(best[0].tokens) for best in found] == [2, 4, 6]
    assert stepper.rows[0] == 3
    assert stepper.rows[-1] == 2


def test_a_beam_wider_than_the_vocabulary_and_fewer_sentences_than_wanted():
    found = beam_search(Table(table(0, vocab=2, length=3), 2), 1, start=0, eos=EOS, beam=50, n_best=50, max_length=3)[0]
    assert {h.tokens for h in found} == {(1,), (0, 1), (0, 0, 1), (0, 0, 0)}
    assert sum(math.exp(h.logprob) for h in found) == pytest.approx(1)


def test_equal_scores_go_to_the_lower_token_and_the_earlier_beam():
    step = torch.zeros(1, 3, 5000)
    step[:, :, EOS] = -50
    found = beam_search(Steps(step), 1, start=0, eos=EOS, beam=3, n_best=3, max_length=3)[0]
    assert [h.tokens for h in found] == [(0, 0, 0), (0, 0, 2), (0, 0, 3)]


def test_forbidden_tokens_and_dead_ends_are_not_numbers_that_spread():
    step = torch.zeros(1, 3, 4)
    step[0, 0, 2:] = -math.inf  # only 0 and the end at first
    step[0, 1] = -math.inf  # and after 0 nothing at all
    found = beam_search(Steps(step), 1, start=0, eos=EOS, beam=3, n_best=3, max_length=3)[0]
    assert [(h.tokens, h.finished) for h in found] == [((EOS,), True)]


def test_log_probabilities_may_be_given_instead_of_logits():
    tables = table(5, sentences=20)
    options = {"start": 0, "eos": EOS, "beam": 4, "max_length": 4}
    logits, logprobs = (beam_search(Table(t, 4), 20, **options) for t in (tables, tables.log_softmax(-1)))
    assert [best[0].tokens for best in logits] == [best[0].tokens for best in logprobs]
    assert [best[0].score for best in logits] == pytest.approx([best[0].score for best in logprobs], abs=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beam": 0}, "beam"),
        ({"beam": 2.0}, "beam"),
        ({"beam": 2, "n_best": 3}, "n_best 3, beam 2"),
        ({"n_best": 0}, "n_best"),
        ({"max_length": -1}, "max_length"),
        ({"max_length": 2.5}, "max_length"),
        ({"max_length": torch.tensor([1, 2])}, "max_length"),
        ({"length_penalty": math.nan}, "length_penalty"),
        ({"length_penalty": math.inf}, "length_penalty"),
        ({"length_penalty": 500.0}, "length_penalty"),
        ({"early_stopping": "always"}, "early_stopping"),
        ({"early_stopping": 1}, "early_stopping"),
        ({"eos": 4}, "eos"),
    ],
)
def test_what_cannot_be_searched_is_refused_in_one_line(changes, message):
    options = {"start": 0, "eos": EOS, "beam": 2, "max_length": 4, **changes}
    with pytest.raises(ValueError, match=message) as error:
        beam_search(Table(table(0), 4), 1, **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("nan", [math.nan, -math.nan])
def test_a_model_that_gives_no_numbers_is_named(nan):
    tables = table(0)
    tables[0, 1:] = nan
    with pytest.raises(ValueError, match=r"token 2 .*NaN"):
        beam_search(Table(tables, 4), 1, start=0, eos=EOS, beam=2, max_length=4)


@pytest.mark.parametrize("width", [1, 5, 63, 64, 1000, 1024, 5001])
@pytest.mark.parametrize("k", [1, 3, 6])
def test_largest_is_a_stable_sort(width, k):
    generator = torch.Generator().manual_seed(width)
    k = min(k, width)
    for values in (
        torch.randn(8, width, generator=generator),
        torch.randint(-3, 3, (8, width), generator=generator).float(),
        torch.full((8, width), -math.inf),
    ):
        found, places = largest(values, k)
        sorted_values, order = values.sort(dim=-1, descending=True, stable=True)
        assert (places == order[:, :k]).all()
        assert (found == sorted_values[:, :k]).all()
