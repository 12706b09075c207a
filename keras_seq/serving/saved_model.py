"""A run as a SavedModel: a string in, a string out, on stock TensorFlow Serving."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_seq import backend
from keras_seq.run import Run
from keras_seq.run.models import load_ensemble, open_ensemble
from keras_seq.serving.checkpoint_record import RECORD_NAME, checkpoint_record
from keras_seq.serving.compaction import compact
from keras_seq.serving.exporter import Exporter
from keras_seq.serving.guide import write_guide
from keras_seq.serving.publishing import check_base, publish_version
from keras_seq.serving.verification import verify_saved_model
from keras_seq.serving.warmup import write_warmup
from keras_seq.settings import TASKS
from keras_seq.storage import write_file
from keras_seq.text import InputError


def export_saved_model(
    run: Run,
    base: str | os.PathLike[str],
    *,
    which: str | int = "best",
    ensemble: Sequence[str | os.PathLike[str]] = (),
    text: bool = True,
    verify: int = 100,
    notice: Callable[[str], None] | None = None,
    **search: Any,
) -> Path:
    """Publishes a run as the next version of a SavedModel for TensorFlow Serving.

    Signatures, for any number B of rows: `serving_default`, text `(B,)` ->
    translation, score and truncated `(B,)`; `n_best`, text `(B,)` -> the same
    three as `(B, N)`; `ids`, int32 `(B, S)` -> ids `(B, N, L)`, length, score
    and truncated `(B, N)`. Where the search found fewer than N, the rest is
    empty with a score of -1e30. Of a language model what goes in are prompts, and
    what comes out is called text in place of translation. Of a classifier and a tagger
    see `label_signatures` and `tag_signatures`. `checkpoint.json` in the version names the step of
    the weights.

    The version is written beside the others, proved, and only then renamed to
    its number: a server that polls the directory never sees half of it.

    Args:
        run: An opened run with weights; trained on any backend.
        base: Directory of the versions, made if need be.
        which: Checkpoint: `"best"`, `"latest"`, or the step of a stored one.
        ensemble: Directories of other runs with the same vocabularies, that translate
            together with it; its settings count.
        text: False leaves the text operations out, for servers that lack them:
            `serving_default` is then `ids`, and a client tokenizes by itself.
        verify: So many lines of the run's validation text must come out of the
            export, in a process without Keras, as `Translator` translates
            them; 0 leaves it out.
        notice: Called with lines on what was done.
        **search: Settings of the search in place of the run's, such as
            `beam_size=4`; see `SearchSettings`.

    Returns:
        The directory of the new version.

    Raises:
        InputError: No weights, other vocabularies in the ensemble, a directory that cannot
            be written, or an export that is not proved; nothing is published then.
        SettingsError: A search setting is unknown or out of bounds.
        RuntimeError: Keras does not run on TensorFlow.
    """
    if backend.name() != "tensorflow":
        raise RuntimeError(
            f"Only TensorFlow writes a SavedModel, received the backend {backend.name()!r}: set "
            "KERAS_BACKEND=tensorflow; the weights are the same on every backend."
        )
    say = notice or (lambda line: None)
    base = Path(base)
    run.require_weights(which)
    check_base(base)
    settings = run.settings.with_search(search)
    if verify and settings.task == "vae" and settings.search.method == "sampling":
        raise InputError(
            "what is drawn from a code hangs on its last bit, so an export that draws cannot be "
            "compared with the run: leave the proof out (--verify 0), or export a beam"
        )
    runs = open_ensemble(run, ensemble, which, notice)
    model = load_ensemble(runs, which)
    exporter: Exporter = TASKS[settings.task].exporter(run, settings)
    # One at least, as an example for the guide.
    inputs = exporter.inputs()[: max(verify, 1)] or ["1"]
    expected = exporter.expected(model, inputs)
    batch_size = settings.search.batch_size

    def write(version: Path) -> None:
        module = exporter.module(model)
        tf.saved_model.save(
            module,
            str(version),
            signatures=module.signatures(text=text),
            # Where in the source text each operation was made: a quarter of the file, of no use.
            options=tf.saved_model.SaveOptions(experimental_debug_stripper=True),
        )
        compact(version)
        write_file(version / RECORD_NAME, checkpoint_record(runs))
        if verify:
            seconds = verify_saved_model(
                version,
                inputs,
                expected,
                batch_size=batch_size,
                feeds=None if text else exporter.encode,
                decode=None if text else exporter.decode,
            )
            say(
                f"{len(inputs)} lines of the validation text come out as the run "
                f"{exporter.verb} them; loaded in {seconds:.2f} s"
            )
        if text:
            write_warmup(version, _warmup_batches(run, exporter, batch_size))

    version = publish_version(base, write)
    if text:
        write_guide(
            base,
            exporter=exporter,
            model_name=base.absolute().name,
            max_batch=batch_size,
            example=inputs[0],
            example_answer=expected[0],
            tensorflow_version=tf.__version__,
        )
    say(_sizes(version, run, model, text))
    return version


def _warmup_batches(run: Run, exporter: Exporter, rows: int) -> list[list[str]]:
    """One row and a full batch, of the shortest input and of one as long as the limit."""
    lines = sorted((line for line in exporter.inputs() if line.strip()), key=len)
    shortest = lines[0] if lines else "a"
    longest, tokens = shortest, 0
    for line in lines:
        tokens += len(run.source_tokenizer.encode([line])[0])
        longest = f"{longest} {line}"
        if tokens >= exporter.limit:
            break
    return [[shortest], [longest], [shortest] * rows, [longest] * rows]


def _sizes(version: Path, run: Run, model: Any, text: bool) -> str:
    total = sum(file.stat().st_size for file in version.rglob("*") if file.is_file())
    least = sum(weight.value.numpy().nbytes for weight in model.weights)
    if text:
        # By identity: a joint vocabulary is one tokenizer.
        different = {id(vocabulary): vocabulary for vocabulary in run.vocabularies}
        least += sum(len(vocabulary.to_bytes()) for vocabulary in different.values())
    over = 100 * (total / least - 1)
    return f"{total / 1e6:.1f} MB, {over:.1f} % more than weights and vocabulary"
