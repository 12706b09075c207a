"""The search of speech recognizers, from sounds to labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from keras import ops

from keras_seq.inference.search import make_search
from keras_seq.search import Labelings, ctc_beam_search, ctc_greedy_search
from keras_seq.search.hypotheses import NEG_INF
from keras_seq.settings import SearchSettings
from keras_seq.text import EOS_ID, Tokenizer

# Shape letters: B batch, N n-best, L labels.

SoundSearch = Callable[[dict[str, Any]], Labelings]


def is_attentional(model: Any) -> bool:
    """Tests if a recognizer has a decoder, such as `models.AttentionRecognizer`."""
    return "target" in model.input


def audio_signature(model: Any) -> tuple[str, tuple[int | None, ...]]:
    """Returns the name of a model's audio input, `samples` or `features`, and its shape."""
    source = model.input["source"] if is_attentional(model) else model.input
    (name,) = set(source) - {"lengths"}
    return name, tuple(source[name].shape)


def make_ctc_search(beam_size: int | None, n_best: int) -> Callable[[Any], Labelings]:
    """Returns a search function from logits to `Labelings`. `beam_size` None is greedy search."""
    if beam_size is None:
        if n_best != 1:
            raise ValueError(f"the greedy search finds one text, received n_best={n_best!r}")
        return ctc_greedy_search
    return lambda logits: ctc_beam_search(logits, beam_size=beam_size, n_best=n_best)


def make_sound_search(
    model: Any,
    labels: Sequence[str] | Tokenizer,
    beam_size: int | None,
    n_best: int,
    search: SearchSettings | None = None,
) -> SoundSearch:
    """Returns a search function from a dict of audio and `lengths` `(B,)` to `Labelings`.

    `beam_size` None is greedy search. `search` has further settings for a model with attention,
    whose labels are a `Tokenizer`.
    """
    if not is_attentional(model):
        decode = make_ctc_search(beam_size, n_best)
        return lambda sounds: decode(model(sounds))
    if not isinstance(labels, Tokenizer):
        raise ValueError("A recognizer with attention needs a `Tokenizer` for `labels`.")
    update = {"beam_size": beam_size or 1, "n_best": n_best}
    find = make_search(model, (search or SearchSettings()).model_copy(update=update), labels)

    def labelings(sounds: dict[str, Any]) -> Labelings:
        result = find(sounds)
        # A recording without sound has the empty text; the attention has nothing to attend to.
        heard = (sounds["lengths"] > 0)[:, None]
        is_label = ops.logical_and(ops.not_equal(result.tokens, EOS_ID), heard[..., None])
        tokens = ops.where(is_label, result.tokens, 0)
        lengths = ops.sum(ops.cast(ops.not_equal(tokens, 0), "int32"), axis=2)
        first = ops.cast(ops.cumsum(ops.ones_like(lengths), axis=1) == 1, result.scores.dtype)
        silent = (1 - first) * NEG_INF
        return Labelings(tokens, lengths, ops.where(heard, result.scores, silent))

    return labelings
