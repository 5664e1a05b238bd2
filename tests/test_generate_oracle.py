"""Our beam search around another library's model must find what that library's own search finds."""

import pytest
import torch

from oneblock.generate import beam_search

VOCAB, SENTENCES, LENGTH = 50, 30, 8


@pytest.fixture(scope="module")
def marian():
    transformers = pytest.importorskip("transformers", reason="the other library is not installed")
    torch.manual_seed(0)
    config = transformers.MarianConfig(
        vocab_size=VOCAB, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=64, pad_token_id=0,
        eos_token_id=2, decoder_start_token_id=0, forced_eos_token_id=None, bad_words_ids=None, dropout=0.0,
    )  # fmt: skip
    model = transformers.MarianMTModel(config).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:  # opinions that are sharp, and different for each source
                parameter.normal_(std=0.6)
    return model


class Whole:
    """A stepper without a cache around the other library's model."""

    def __init__(self, model, source):
        self.model, self.memory = model, model.model.encoder(source)[0]
        self.rows, self.target = torch.arange(len(source)), None

    def __call__(self, tokens):
        column = tokens[:, None]
        self.target = column if self.target is None else torch.cat([self.target, column], 1)
        return self.model(
            encoder_outputs=(self.memory[self.rows],),
            attention_mask=torch.ones(len(self.rows), LENGTH, dtype=torch.long),
            decoder_input_ids=self.target,
        ).logits[:, -1]

    def reorder(self, rows, _):
        self.rows, self.target = self.rows[rows], self.target[rows]


@torch.no_grad()
@pytest.mark.parametrize("rule", ["never", False, True])
@pytest.mark.parametrize("alpha", [-1.0, 0.0, 1.0, 2.0])
def test_B44_all_hypotheses_and_scores_agree_with_transformers(marian, rule, alpha):
    source = torch.randint(3, VOCAB, (SENTENCES, LENGTH))
    options = {"length_penalty": alpha, "early_stopping": rule}
    theirs = marian.generate(
        source, attention_mask=torch.ones_like(source), num_beams=4, num_return_sequences=4, max_new_tokens=9,
        do_sample=False, output_scores=True, return_dict_in_generate=True, **options,
    )  # fmt: skip
    ours = beam_search(Whole(marian, source), SENTENCES, start=0, eos=2, beam=4, n_best=4, max_length=9, **options)
    flat = [hypothesis for best in ours for hypothesis in best]
    assert len({h.tokens for h in flat}) > SENTENCES  # a model that always says the same would prove nothing
    for hypothesis, sequence in zip(flat, theirs.sequences[:, 1:].tolist(), strict=True):
        length = sequence.index(2) + 1 if 2 in sequence else len(sequence)
        assert hypothesis.tokens == tuple(sequence[:length])
    assert [h.score for h in flat] == pytest.approx(theirs.sequences_scores.tolist(), abs=1e-4)
