"""Parts of the exports that run without TensorFlow: the model, its files and its verification."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from keras_seq import __version__, runtime
from keras_seq.inference.search import search_config
from keras_seq.run import Run
from keras_seq.run.ensembles import open_ensemble
from keras_seq.run.models import load_ensemble
from keras_seq.scoring import bleu
from keras_seq.serving.exporter import make_exporter
from keras_seq.serving.http.versions import RECORD_NAME
from keras_seq.serving.model_graphs import GraphParts, ModelGraph
from keras_seq.serving.publishing import check_destination, checkpoint_record
from keras_seq.serving.signature_module import require_tensorflow
from keras_seq.serving.verification import require_equal
from keras_seq.settings import TASKS, SearchSettings, Settings
from keras_seq.text import FeatureTokenizer, InputError, Tokenizer, WordPieceTokenizer

QUANTIZATIONS = ("float32", "int8")
# Search settings that a runtime does not have.
_OF_RUNS = ("rerank", "candidates")


class PortableModel(NamedTuple):
    """A run's model to export, and the outputs that prove the export.

    Attributes:
        runs: The run, and the other members of an ensemble.
        model: The model.
        exporter: The parts that depend on the task.
        settings: The settings of the run with the search settings of the export.
        numbers: Numbers of the validation lines for the verification, from 0.
        inputs: Their texts or recordings.
        expected: The outputs of the run for them.
    """

    runs: Sequence[Run]
    model: Any
    exporter: Any
    settings: Settings
    numbers: Sequence[int]
    inputs: Sequence[Any]
    expected: Sequence[str]

    def parts(self, form: str, *arguments: Any) -> GraphParts:
        """Returns the parts of an export to `form`, `"onnx"` or `"litert"`."""
        make = getattr(self.exporter, form, None)
        if make is None:
            raise InputError(
                f"{self.runs[0].path}: the task {self.settings.task!r} has no export to {form}: "
                f"its {type(self.exporter).__name__} lacks a method `{form}`"
            )
        parts: GraphParts = make(self.model, *arguments)
        return parts

    def require_answer(self, graph: ModelGraph) -> None:
        """Requires that `keras_seq.runtime` can answer with a graph."""
        if graph.answer not in runtime.MODELS:
            raise InputError(
                f"{self.runs[0].path}: the task {self.settings.task!r} cannot be exported: the "
                f"`answer` of its ModelGraph is {graph.answer!r:.80}, expected one of "
                f"{', '.join(runtime.MODELS)}"
            )

    def files(self, parts: GraphParts, **settings: Any) -> dict[str, bytes]:
        """Returns the contents of the settings and vocabularies, by file name.

        `settings` are further entries of `model.json`.
        """
        files = {RECORD_NAME: checkpoint_record(self.runs)}
        stored: dict[str, Any] = {
            "format": runtime.FORMAT,
            "keras_seq": __version__,
            "task": self.settings.task,
            "batch_size": self.settings.search.batch_size,
            "options": search_options("batch_size"),
            **settings,
            **parts.settings,
        }
        for name, vocabulary in zip(("source", "target"), parts.vocabularies, strict=False):
            # A joint vocabulary is stored once.
            is_joint = name == "target" and vocabulary is parts.vocabularies[0]
            stored[name] = (
                stored["source"] if is_joint else _add_vocabulary(files, name, vocabulary)
            )
        content = json.dumps(stored, ensure_ascii=False, indent=1) + "\n"
        files[runtime.MODEL_FILE] = content.encode("utf-8", "surrogatepass")
        return files

    def prove(self, outputs: Sequence[str]) -> str:
        """Requires that the outputs of an export are those of the run, and returns a report."""
        require_equal(self.inputs, outputs, self.expected)
        noun = "recordings" if TASKS[self.settings.task].reads_sounds else "lines of text"
        return f"{len(self.inputs)} validation {noun} come out as the run {self.exporter.verb} them"

    def compare(self, outputs: Sequence[str]) -> str:
        """Reports how the outputs of an export of int8 differ from those of the run."""
        different = sum(a != b for a, b in zip(self.expected, outputs, strict=True))
        if self.settings.task != "translate":
            return f"int8: {different} of {len(outputs)} lines differ"
        lines = self.runs[0].valid_lines()[1]
        references = [lines[number] for number in self.numbers]
        before, after = (bleu(texts, [references]).value for texts in (self.expected, outputs))
        return (
            f"int8: BLEU {after:.2f} on them, {after - before:+.2f} against {before:.2f}; "
            f"{different} lines differ"
        )


def load_portable_model(
    run: Run,
    destination: Path,
    *,
    which: str | int,
    ensemble: Sequence[str | os.PathLike[str]],
    quantization: str,
    verify: int,
    notice: Callable[[str], None] | None,
    search: dict[str, Any],
    max_input: float | None = None,
) -> PortableModel:
    """Checks the arguments of an export, and loads the model; see `export_litert`.

    Validation inputs that are longer than `max_input` are not used for the verification.
    """
    require_tensorflow()
    if quantization not in QUANTIZATIONS:
        raise InputError(
            f"quantization: received {quantization!r}, expected one of {', '.join(QUANTIZATIONS)}"
        )
    run.require_weights(which)
    check_destination(destination)
    settings = run.settings.with_search(search)
    if settings.task == "vae" and settings.search.method == "sampling":
        raise InputError(
            "search.method: received sampling, expected beam: an export reads texts, and the "
            "samples of an autoencoder depend on the latent code"
        )
    if TASKS[settings.task].reads_sounds and ensemble:
        raise InputError("a model of recordings has no ensembles")
    if verify:
        # A copy from elsewhere has no validation text.
        run.valid_lines()
    exporter: Any = make_exporter(run, settings)
    longest = exporter.longest_input(max_input)
    runs = open_ensemble(run, ensemble, which, notice)
    model = load_ensemble(runs, which)
    inputs = exporter.inputs() if verify else []
    numbers = [
        number
        for number, one in enumerate(inputs)
        if max_input is None or exporter.length(one) <= longest
    ][:verify]
    inputs = [inputs[number] for number in numbers]
    expected = exporter.expected(model, inputs) if inputs else []
    return PortableModel(runs, model, exporter, settings, numbers, inputs, expected)


def search_settings(search: SearchSettings, tokenizer: Tokenizer) -> dict[str, Any]:
    """Returns the search settings as `keras_seq.runtime` reads them, with ids instead of text."""
    config = search_config(search, tokenizer)
    prefix = tokenizer.encode([search.prefix])[0] if search.prefix else []
    return {**asdict(config), "method": search.method, "prefix": prefix}


def search_options(*names: str) -> dict[str, Any]:
    """Returns the JSON schemas of the search settings that `keras_seq.runtime.load` takes."""
    schemas = SearchSettings.model_json_schema()["properties"]
    keys = ("type", "enum", "minimum", "exclusiveMinimum", "maximum")
    return {
        name: {key: schemas[name][key] for key in keys if key in schemas[name]}
        for name in names
        if name not in _OF_RUNS
    }


def _add_vocabulary(files: dict[str, bytes], name: str, tokenizer: Tokenizer) -> dict[str, Any]:
    """Adds the file of a vocabulary, and returns its entry of `model.json`."""
    if isinstance(tokenizer, WordPieceTokenizer):
        files[f"{name}.json"] = tokenizer.to_bytes()
        return {"file": f"{name}.json"}
    stored: dict[str, Any] = {"file": f"{name}.model"}
    if isinstance(tokenizer, FeatureTokenizer):
        stored["features"] = list(tokenizer.features.names)
        stored["feature_separator"] = tokenizer.separator
        tokenizer = tokenizer.source
    rules = tokenizer.rules
    stored |= {"form": rules.form, "lowercase": rules.lowercase, "separator": rules.separator}
    files[stored["file"]] = tokenizer.to_bytes()
    return stored
