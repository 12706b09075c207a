"""Sounds to text: where a recogniser, its search and its labels meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from keras import ops

from keras_seq import backend
from keras_seq.search import Labelings, ctc_beam_search, ctc_greedy_search


class Recognition(NamedTuple):
    """What was heard, and its log-probability."""

    text: str
    score: float


class Recognizer:
    """A model trained by CTC with its labels.

    A sound of no samples, or of digital silence throughout, is the empty text.

    Args:
        model: `models.CTCRecognizer`, or another model of the same inputs and logits.
        labels: V - 1 strings, that of label 1 first; label 0 is the blank.
        separator: What stands between two labels: nothing between characters, a space
            between words.
        beam_size: Of `search.ctc_beam_search`; None is the greedy search.
        n_best: How many texts `recognize` gives of each sound, at most `beam_size`.
        batch_size: So many sounds at a time, those of like length together.

    Raises:
        ValueError: If there are not as many labels as the model has.
    """

    def __init__(
        self,
        model: Any,
        labels: Sequence[str],
        *,
        separator: str = "",
        beam_size: int | None = 10,
        n_best: int = 1,
        batch_size: int = 16,
    ) -> None:
        check_labels(model, labels)
        self.labels = ["", *labels]
        self.separator = separator
        self.batch_size = batch_size
        search = make_ctc_search(beam_size, n_best)
        name, spec = sound_spec(model)

        def find(sounds: Any, lengths: Any) -> Labelings:
            if len(spec) == 3:
                # On TensorFlow a graph for every shape does not know how many features there are.
                sounds = ops.reshape(sounds, (*ops.shape(sounds)[:2], spec[-1]))
            lengths = heard_lengths(name, sounds, lengths)
            return search(model({name: sounds, "lengths": lengths}))

        self._find = backend.compiled(find, model.variables, (len(spec), 1), ("float32", "int32"))

    def __call__(self, sounds: Sequence[Any]) -> list[str]:
        """The most probable text of each sound."""
        return [found[0].text for found in self.recognize(sounds)]

    def recognize(self, sounds: Sequence[Any]) -> list[list[Recognition]]:
        """The most probable texts of each sound, best first; fewer than N where there are.

        Args:
            sounds: Float arrays `(samples,)`, or `(steps, features)` where the model takes
                features.
        """
        arrays = [np.asarray(sound, "float32") for sound in sounds]
        order = sorted(range(len(arrays)), key=lambda number: len(arrays[number]))
        found: dict[int, list[Recognition]] = {}
        for start in range(0, len(order), self.batch_size):
            some = order[start : start + self.batch_size]
            padded, lengths = pad_sounds([arrays[number] for number in some])
            result = self._find(padded, lengths)
            found |= zip(some, self._texts(result), strict=True)
        return [found[number] for number in range(len(arrays))]

    def _texts(self, found: Labelings) -> list[list[Recognition]]:
        labels, lengths, scores = map(backend.to_numpy, found)
        return [
            [
                Recognition(
                    self.separator.join(self.labels[label] for label in row[place][: size[place]]),
                    float(score[place]),
                )
                for place in range(len(size))
                if score[place] > -1e29
            ]
            for row, size, score in zip(labels, lengths, scores, strict=True)
        ]


def pad_sounds(sounds: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Sounds of several lengths as one array, with zeros behind them, and their lengths."""
    lengths = np.array([len(sound) for sound in sounds], "int32")
    padded = np.zeros((len(sounds), lengths.max(initial=0), *sounds[0].shape[1:]), "float32")
    for row, sound in zip(padded, sounds, strict=True):
        row[: len(sound)] = sound
    return padded, lengths


def heard_lengths(name: str, sounds: Any, lengths: Any) -> Any:
    """Lengths, 0 of sounds whose samples are all 0.

    A microphone that is off gives these, and recordings to learn from hold none: of features
    that it never met a model may say anything.

    Args:
        name: What the model calls its sounds. Features of 0 are not known to be silence.
        sounds: Tensor `(B, samples)`.
        lengths: Integers `(B,)`.
    """
    if name != "samples":
        return lengths
    real = ops.arange(ops.shape(sounds)[1], dtype="int32") < lengths[:, None]
    heard = ops.any(ops.logical_and(real, ops.not_equal(sounds, 0)), axis=1)
    return ops.where(heard, lengths, 0)


def make_ctc_search(beam_size: int | None, n_best: int) -> Callable[[Any], Labelings]:
    """A function from logits to `Labelings`; greedy if `beam_size` is None."""
    if beam_size is None:
        if n_best != 1:
            raise ValueError(f"the greedy search finds one text, received n_best={n_best!r}")
        return ctc_greedy_search
    return lambda logits: ctc_beam_search(logits, beam_size=beam_size, n_best=n_best)


def check_labels(model: Any, labels: Sequence[str]) -> None:
    """Raises ValueError unless there is a label for each output of a model but the blank."""
    if isinstance(labels, str) or len(labels) + 1 != model.output_shape[-1]:
        raise ValueError(
            f"expected a list of {model.output_shape[-1] - 1} labels, as many as the model has "
            f"beside the blank, received {len(labels)}"
        )


def sound_spec(model: Any) -> tuple[str, tuple[int | None, ...]]:
    """What a model calls its sounds, `samples` or `features`, and their shape."""
    (name,) = set(model.input) - {"lengths"}
    return name, tuple(model.input[name].shape)
