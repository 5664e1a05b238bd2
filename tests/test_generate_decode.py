"""Searching through a model: a cache, shared memories, and batches must change nothing but the time it takes."""

import pytest
import torch

from oneblock.bricks import Memory, build_model
from oneblock.generate import Seq2SeqStepper, beam_search, score
from oneblock.zoo import named

START, EOS, VOCAB = 1, 2, 40


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(3)
    model = build_model(named("vaswani", dim=16, depth=2, heads=2, hidden=32, vocab=VOCAB)).double().eval()
    with torch.no_grad():  # larger weights: sharper and more various opinions
        for parameter in model.parameters():
            parameter.mul_(1.5).add_(0.3 * torch.randn_like(parameter))
    return model


@pytest.fixture(scope="module")
def source():
    ids = torch.randint(3, VOCAB, (6, 9), generator=torch.Generator().manual_seed(0))
    real = torch.arange(9) < torch.tensor([9, 2, 5, 1, 7, 3])[:, None]
    return ids.where(real, 0), real.long()


class Recompute:
    """No cache, and the memory repeated for every row: the whole target through the decoder at every step."""

    def __init__(self, model, memory):
        self.model, self.memory = model, memory
        self.rows, self.target = torch.arange(len(memory.x)), None

    def __call__(self, tokens):
        column = tokens[:, None]
        self.target = column if self.target is None else torch.cat([self.target, column], 1)
        memory = Memory(self.memory.x[self.rows], self.memory.places.rows(self.rows))
        return self.model(encoder_outputs=memory, decoder_input_ids=self.target).logits[:, -1]

    def reorder(self, rows, _):
        self.rows, self.target = self.rows[rows], self.target[rows]


def search(make, model, source, **options):
    ids, real = source
    memory = model.encode(ids, real)
    options = {"beam": 4, "n_best": 4, "max_length": torch.tensor([12, 3, 12, 8, 5, 12])[: len(ids)], **options}
    return beam_search(make(model, memory), len(ids), start=START, eos=EOS, **options)


def same(found, expected):
    assert [[h.tokens for h in best] for best in found] == [[h.tokens for h in best] for best in expected]
    for best, others in zip(found, expected, strict=True):
        assert [h.score for h in best] == pytest.approx([h.score for h in others], abs=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("rule", ["never", True])
def test_cached_beams_that_share_a_memory_equal_full_recompute(model, source, beam, rule):
    options = {"beam": beam, "n_best": beam, "early_stopping": rule}
    found = search(Seq2SeqStepper, model, source, **options)
    same(found, search(Recompute, model, source, **options))
    assert (
        len({h.tokens for best in found for h in best}) > 4 * beam
    )  # a model that always says the same proves nothing
    assert len({len(h.tokens) for best in found for h in best}) > 1


@torch.no_grad()
@pytest.mark.parametrize("rule", ["never", False, True])
def test_a_padded_batch_equals_one_sentence_at_a_time(model, source, rule):
    ids, real = source
    together = search(Seq2SeqStepper, model, source, early_stopping=rule)
    limits = (12, 3, 12, 8, 5, 12)
    alone = [
        search(Seq2SeqStepper, model, (ids[i : i + 1, : real[i].sum()], None), max_length=n, early_stopping=rule)[0]
        for i, n in enumerate(limits)
    ]
    same(together, alone)


@torch.no_grad()
def test_no_work_for_finished_sentences_and_no_memory_per_beam(model, source):
    seen = []

    class Watched(Seq2SeqStepper):
        def __call__(self, tokens):
            seen.append((len(tokens), len(self.memory.x)))
            return super().__call__(tokens)

    search(Watched, model, source, max_length=torch.tensor([1, 2, 3, 4, 5, 6]))
    assert seen == [(6, 6), (20, 5), (16, 4), (12, 3), (8, 2), (4, 1)]


@torch.no_grad()
def test_score_of_a_translation_is_what_the_search_found(model, source):
    ids, real = source
    found = search(Seq2SeqStepper, model, source)
    for rank in range(4):
        targets = [torch.tensor(best[rank].tokens) for best in found]
        padded = torch.nn.utils.rnn.pad_sequence(targets, batch_first=True, padding_value=-100)
        logprob = score(model, ids, padded, real)
        assert logprob.shape == padded.shape
        assert (logprob[padded == -100] == 0).all()
        assert logprob.sum(1).tolist() == pytest.approx([best[rank].logprob for best in found], abs=1e-4)


def test_B40_a_search_draws_no_random_numbers(model, source):
    state = torch.get_rng_state()
    search(Seq2SeqStepper, model, source)
    assert (torch.get_rng_state() == state).all()
