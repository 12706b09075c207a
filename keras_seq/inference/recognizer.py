"""Text from audio: a speech recognizer and its labels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from keras import ops

from keras_seq import backend
from keras_seq.data.sounds import read_sounds
from keras_seq.inference.predictor import predict_by_length
from keras_seq.inference.run_predictor import RunPredictor
from keras_seq.inference.sound_search import audio_signature, make_sound_search
from keras_seq.run import Run
from keras_seq.search import Labelings
from keras_seq.search.hypotheses import exists
from keras_seq.settings import SearchSettings
from keras_seq.text import Tokenizer


class Recognition(NamedTuple):
    """A recognized text and its log-probability."""

    text: str
    score: float


class Recognizer(RunPredictor):
    """Recognizes speech with a model trained by CTC or with attention.

    Audio without samples, or whose samples are all 0, is recognized as the empty text.

    Args:
        model: `models.CTCRecognizer`, or another model with the same inputs and logits; or
            `models.AttentionRecognizer`.
        labels: V - 1 strings for the labels 1 to V - 1; label 0 is the blank. Or a `Tokenizer` of
            V tokens.
        separator: The text between two strings of labels: "" for characters, a space for words.
        beam_size: The beam size of `search.ctc_beam_search`, or of `search.beam_search` for a model
            with attention; None for the greedy search.
        n_best: Texts that `recognize` returns for each recording, at most `beam_size`.
        batch_size: Recordings per batch.
        sample_rate: Samples per second of the audio that the model reads, for `recognize_files`.
        search: Further settings of the search of a model with attention.

    Raises:
        ValueError: If the number of labels does not fit the model, or the labels of a model with
            attention are not a `Tokenizer`.
    """

    task = "speech"
    supports_ensembles = False

    def __init__(
        self,
        model: Any,
        labels: Sequence[str] | Tokenizer,
        *,
        separator: str = "",
        beam_size: int | None = 10,
        n_best: int = 1,
        batch_size: int = 16,
        sample_rate: int | None = None,
        search: SearchSettings | None = None,
    ) -> None:
        check_labels(model, labels)
        self.model = model
        self.labels = labels
        self.separator = separator
        self.batch_size = batch_size
        self.sample_rate = sample_rate
        find = make_sound_search(model, labels, beam_size, n_best, search)
        name, shape = audio_signature(model)

        def recognize(audio: Any, lengths: Any) -> Labelings:
            if len(shape) == 3:
                # A TensorFlow graph with dynamic shapes does not know the number of features.
                audio = ops.reshape(audio, (*backend.shape(audio)[:2], shape[-1]))
            lengths = audio_lengths(name, audio, lengths)
            return find({name: audio, "lengths": lengths})

        ranks = len(shape), 1
        self._search = backend.compiled(recognize, model.variables, ranks, ("float32", "int32"))

    @classmethod
    def of_run(
        cls, run: Run, model: Any, search: SearchSettings | None = None, **options: Any
    ) -> Self:
        search = search or run.settings.search
        return cls(
            model,
            run.target_tokenizer,
            beam_size=search.beam_size if search.beam_size > 1 else None,
            n_best=search.n_best,
            batch_size=search.batch_size,
            sample_rate=run.settings.data.sample_rate,
            search=search,
        )

    def recognize_files(self, paths: Sequence[str | os.PathLike[str]]) -> list[list[Recognition]]:
        """Returns up to `n_best` texts for each file, the most probable first.

        Files of another rate than `sample_rate` are converted. Raises InputError if a file is not a
        recording that can be read.
        """
        results: list[list[Recognition]] = []
        for group in read_sounds(paths, self.sample_rate):
            results += self.recognize(group)
        return results

    def __call__(self, audio: Sequence[Any]) -> list[str]:
        """Returns the most probable text of each recording."""
        return [recognitions[0].text for recognitions in self.recognize(audio)]

    def recognize(self, audio: Sequence[Any]) -> list[list[Recognition]]:
        """Returns up to `n_best` texts for each recording, the most probable first.

        Args:
            audio: Float arrays `(samples,)`, or `(steps, features)` for a model that reads
                features.
        """
        arrays = [np.asarray(array, "float32") for array in audio]
        return predict_by_length(arrays, self._predict, self.batch_size)

    def _predict(self, arrays: list[np.ndarray]) -> list[list[Recognition]]:
        labels, lengths, scores = map(backend.to_numpy, self._search(*pad_audio(arrays)))
        return [
            [
                Recognition(self._text(ids[:length]), float(score))
                for ids, length, score in zip(*row, strict=True)
                # The search pads the list with hypotheses that have no probability.
                if exists(score)
            ]
            for row in zip(labels, lengths, scores, strict=True)
        ]

    def _text(self, ids: Any) -> str:
        if isinstance(self.labels, Tokenizer):
            return self.labels.decode([ids.tolist()])[0]
        return self.separator.join(self.labels[i - 1] for i in ids)


def pad_audio(audio: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Returns recordings padded with zeros to one array, and their lengths."""
    lengths = np.array([len(array) for array in audio], "int32")
    padded = np.zeros((len(audio), lengths.max(initial=0), *audio[0].shape[1:]), "float32")
    for row, array in zip(padded, audio, strict=True):
        row[: len(array)] = array
    return padded, lengths


def audio_lengths(name: str, audio: Any, lengths: Any) -> Any:
    """Returns the lengths, with 0 for recordings whose samples are all 0.

    A microphone that is off records such samples. Training recordings have none, so the output of a
    model for them is arbitrary. Features of 0 are not known to be silence, so only audio counts.
    """
    if name != "samples":
        return lengths
    real = ops.arange(backend.shape(audio)[1], dtype="int32") < lengths[:, None]
    audible = ops.any(ops.logical_and(real, ops.not_equal(audio, 0)), axis=1)
    return ops.where(audible, lengths, 0)


def check_labels(model: Any, labels: Sequence[str] | Tokenizer) -> None:
    """Raises ValueError unless every output of the model except the blank has a label."""
    expected = model.output_shape[-1] - 1
    received = labels.vocabulary_size - 1 if isinstance(labels, Tokenizer) else len(labels)
    if isinstance(labels, str) or received != expected:
        raise ValueError(
            f"expected a list of {expected} labels, one for each output of the model except the "
            f"blank, received {received}"
        )
