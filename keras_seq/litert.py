"""Runs models that `keras-seq export --format litert` wrote, without Keras and TensorFlow.

    model = load("ende.tflite")
    model(["A dog runs."])               # ["Ein Hund rennt."]; float arrays for recordings

    python -m keras_seq.litert ende.tflite < input > output

The packages numpy, ai-edge-litert and sentencepiece are enough.

Shape letters: N n-best, L target steps, S frames, W words.
"""

from __future__ import annotations

import functools
import os
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_seq import runtime
from keras_seq.runtime import Model, Output, RuntimeInputError

__all__ = ["load"]

# The format of the file has offsets of 32 bits.
_MAX_FILE_BYTES = 2 << 30


def load(path: str | os.PathLike[str], *, threads: int | None = None) -> Model:
    """Loads an export.

    Args:
        path: The file that `keras-seq export --format litert` wrote.
        threads: Number of threads of one operation; by default LiteRT's.

    Returns:
        A function from a list of texts or recordings to a list of answers; see `runtime.Model`.

    Raises:
        RuntimeInputError: If there is no export of this version, or the file is damaged.
    """
    if os.path.lexists(path):
        runtime.check_file(Path(path), _MAX_FILE_BYTES)
    try:
        archive: Any = zipfile.Path(os.fspath(path))
    # A ZIP file of another version is "not implemented".
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile) as error:
        reason = runtime.reason_of(error)
        raise RuntimeInputError(f"{path}: not an export to LiteRT: {reason}") from None
    graphs = functools.cache(lambda name: _Graph(Path(path), threads))
    return runtime.model_of(archive, _MODELS, graphs, {})


class _Graph:
    """The signature of a file. Inputs are padded with zeros to its fixed shapes."""

    def __init__(self, path: Path, threads: int | None) -> None:
        from ai_edge_litert.interpreter import Interpreter

        self.path = path
        try:
            interpreter = Interpreter(model_path=str(path), num_threads=threads)
            (name,) = interpreter.get_signature_list()
            self._run = interpreter.get_signature_runner(name)
            self._inputs = self._run.get_input_details()
        except Exception as error:  # LiteRT has an error class for each cause
            reason = runtime.reason_of(error)
            raise RuntimeInputError(f"{path}: cannot be loaded: {reason}") from None

    def __call__(self, inputs: dict[str, Any]) -> dict[str, np.ndarray]:
        """Runs the model with arrays by name. Those that are missing are zero."""
        feed = {}
        for name, details in self._inputs.items():
            array = np.zeros(details["shape"], details["dtype"])
            if name in inputs:
                given = inputs[name]
                if given.ndim != array.ndim or any(np.greater(given.shape, array.shape)):
                    raise RuntimeInputError(
                        f"{self.path}: damaged: the input {name!a:.80} has the shape "
                        f"{array.shape}, expected at least {given.shape}"
                    )
                array[tuple(map(slice, given.shape))] = given
            feed[name] = array
        try:
            found = self._run(**feed)
        except Exception as error:  # LiteRT has an error class for each cause
            # The cause may be a damaged file, but also too little memory.
            reason = runtime.reason_of(error)
            raise RuntimeInputError(f"{self.path}: cannot be run: {reason}") from None
        return {name.removeprefix("new_"): array for name, array in found.items()}


class _Generator(Model):
    """Returns up to `n_best` texts for each text, best first; none for a blank text."""

    fields = ("max_length", "continues", "source", "target")

    def _prepare(self, folder: Path, stored: dict[str, Any], search: dict[str, Any]) -> None:
        super()._prepare(folder, stored, search)
        self._target = self._source
        if stored["target"] != stored["source"]:
            self._target = runtime.vocabulary(folder, "target", stored["target"])
        self._continues: bool = stored["continues"]

    def run(self, inputs: Sequence[str]) -> list[list[Output]]:
        sources, truncated = self._encoded(inputs)
        return [
            self._answers(source, cut) if source or self._continues else []
            for source, cut in zip(sources, truncated, strict=True)
        ]

    def _answers(self, source: list[int], cut: bool) -> list[Output]:
        end = [] if self._continues else [runtime.END]
        graph = self._graph("model")
        found = runtime.outputs_of(
            graph.path,
            graph({"source": np.array([[*source, *end]], np.int32)}),
            tokens=("i", (1, None, None)),
            scores=("f", (1, None)),
            truncated=("b", (1, None)),
        )
        tokens, scores, truncated = (found[name][0] for name in ("tokens", "scores", "truncated"))
        if not len(tokens) == len(scores) == len(truncated):
            raise RuntimeInputError(f"{graph.path}: damaged: its outputs do not agree")
        texts = self._target.decode(tokens)
        return [
            Output(text, float(score), bool(cut or early))
            for text, score, early in zip(texts, scores, truncated, strict=True)
            if score > runtime.NO_SCORE
        ]


class _Recognizer(runtime.Recognizer):
    """Returns the most probable texts of a recording, whose end is cut off if it is too long."""

    fields = (*runtime.Recognizer.fields, "max_samples")

    def run(self, inputs: Sequence[np.ndarray]) -> list[list[Output]]:
        longest = self._stored["max_samples"]
        results = super().run([array[:longest] for array in inputs])
        return [
            [output._replace(truncated=len(array) > longest) for output in row]
            for array, row in zip(inputs, results, strict=True)
        ]


class _Detector(runtime.Detector):
    """Returns the detections in a recording, which is read as a stream."""

    fields = (*runtime.Detector.fields, "piece_samples")

    def _outputs(
        self, recordings: Sequence[np.ndarray], silence: int = 0
    ) -> Iterator[tuple[int, int, dict[str, np.ndarray]]]:
        graph, size = self._graph("model"), self._stored["piece_samples"]
        for number, recording in enumerate(recordings):
            samples = np.pad(np.asarray(recording, np.float32), (0, silence))
            state: dict[str, np.ndarray] = {}
            rows = []
            for start in range(0, len(samples), size):
                state = graph({**state, "samples": samples[None, start : start + size]})
                shape = ("f", (1, None, len(self._labels)))
                found = runtime.outputs_of(graph.path, state, probabilities=shape)
                rows.append(found["probabilities"][0])  # (S, W)
                del state["probabilities"]
            yield number, len(samples), {"probabilities": np.concatenate(rows)}


_MODELS: dict[str, type[Model]] = {
    "text": _Generator,
    "label": runtime.Classifier,
    "tags": runtime.Tagger,
    "transcript": _Recognizer,
    "detections": _Detector,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Answers each line of stdin with a line."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.stderr.write("usage: python -m keras_seq.litert MODEL.tflite < input > output\n")
        return 2
    path = arguments[0]
    return runtime.guarded("litert", lambda: runtime.answer_lines(load(path)))


if __name__ == "__main__":
    sys.exit(main())
