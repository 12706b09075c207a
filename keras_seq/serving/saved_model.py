"""Export of a run to a SavedModel for TensorFlow Serving."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_seq.run import Run
from keras_seq.run.ensembles import open_ensemble
from keras_seq.run.models import load_ensemble
from keras_seq.serving.deployment import batching_parameters, write_deployment
from keras_seq.serving.exporter import Exporter, make_exporter
from keras_seq.serving.graph_file.operations import operations
from keras_seq.serving.guide import text_guide, write_guide
from keras_seq.serving.http.versions import RECORD_NAME
from keras_seq.serving.publishing import check_base, checkpoint_record, publish_version
from keras_seq.serving.signature_module import require_tensorflow
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
    ids_only: bool = False,
    verify: int = 100,
    notice: Callable[[str], None] | None = None,
    **search: Any,
) -> Path:
    """Exports a run as the next SavedModel version in `base`. Returns the path of the version.

    Each signature accepts any number B of rows:

    * `serving_default`: text `(B,)` -> translation, score and truncated, each `(B,)`;
    * `n_best`: text `(B,)` -> the same three outputs, each `(B, N)`;
    * `ids`: int32 `(B, S)` -> ids `(B, N, L)`, and length, score and truncated, each `(B, N)`.

    If the search finds fewer than N outputs, empty outputs with a score of -1e30 fill the rest. A
    language model takes prompts and its output is called `text` instead of `translation`.
    `label_signatures` and `tag_signatures` document the signatures of classifiers and taggers.
    The file `checkpoint.json` in the version contains the step of the weights.

    The version is written to a temporary directory, verified, and then renamed to its number, so a
    server that polls the directory never sees an incomplete version.

    Args:
        run: An opened run with weights, trained on any backend.
        base: Directory of the versions; created if it is missing.
        which: `"best"`, `"latest"`, or the step of a stored checkpoint.
        ensemble: Directories of other runs with the same vocabularies. All runs translate together
            with the settings of `run`.
        ids_only: Boolean, whether to omit the text operations, for servers that lack these
            operations. `serving_default` is then the same as `ids`, and clients must tokenize.
        verify: Number of lines of the run's validation text for which the export, in a process
            without Keras, must return the outputs of the run; 0 skips the verification.
        notice: Called with lines that report the progress.
        **search: Search settings that replace those of the run, such as `beam_size=4`; see
            `SearchSettings`.

    Raises:
        InputError: The run has no weights, the vocabularies of the ensemble differ, `base` cannot
            be written, or the verification fails; nothing is published.
        SettingsError: A search setting is unknown or out of bounds.
        RuntimeError: Keras does not run on TensorFlow.
    """
    require_tensorflow()

    report = notice or (lambda line: None)
    base = Path(base)
    run.require_weights(which)
    check_base(base)
    if verify:
        # A copy from elsewhere has no validation text.
        run.valid_lines()
    settings = run.settings.with_search(search)
    if verify and settings.task == "vae" and settings.search.method == "sampling":
        raise InputError(
            "samples from a latent code depend on its last bit, so an export that samples cannot "
            "be compared with the run: skip the verification (--verify 0), or export a beam search"
        )
    if TASKS[settings.task].reads_sounds:
        if ensemble or ids_only:
            raise InputError("a model of recordings has no ensembles and reads no ids")
        options = {"which": which, "verify": verify, "notice": notice}
        exported: Path = TASKS[settings.task].export(run, base, settings, **options)
        return exported
    runs = open_ensemble(run, ensemble, which, notice)
    model = load_ensemble(runs, which)
    exporter = make_exporter(run, settings)
    return publish(
        base,
        exporter,
        model,
        vocabularies=run.vocabularies,
        record=checkpoint_record(runs),
        batch_size=settings.search.batch_size,
        ids_only=ids_only,
        verify=verify,
        proof=f"lines of the validation text come out as the run {exporter.verb} them",
        report=report,
    )


def publish(
    base: Path,
    exporter: Exporter,
    model: Any,
    *,
    vocabularies: Sequence[Any],
    record: bytes,
    batch_size: int,
    ids_only: bool,
    verify: int,
    proof: str,
    report: Callable[[str], None],
) -> Path:
    """Writes, verifies and publishes the next version of a model; see `export_saved_model`.

    `record` is the content of the file `checkpoint.json`. `vocabularies` are source and target
    vocabulary. `proof` is what the verification shows, in the report after the number of inputs.
    """
    # Without verification, read one input anyway: the guide needs an example.
    inputs = exporter.inputs()[: max(verify, 1)] or ["1"]
    expected = exporter.expected(model, inputs)

    def write(version: Path) -> None:
        exporter.module(model).save(version, ids_only=ids_only)
        write_file(version / RECORD_NAME, record)
        if verify:
            seconds = verify_saved_model(
                version,
                inputs,
                expected,
                batch_size=batch_size,
                requests=exporter.requests,
                encode=exporter.encode if ids_only else None,
                decode=exporter.decode if ids_only else None,
            )
            report(f"{len(inputs)} {proof}; loaded in {seconds:.2f} s")
        if not ids_only:
            batches = _warmup_batches(vocabularies[0], exporter, batch_size)
            write_warmup(version, [exporter.requests(batch) for batch in batches])

    version = publish_version(base, write)
    items = "rows" if ids_only else "texts"
    write_deployment(base, version, batching_parameters(items, batch_size))
    if not ids_only:
        guide = text_guide(exporter, inputs[0], expected[0])
        write_guide(base, guide, operations(version), batch_size, tf.__version__)
    report(_size_report(version, vocabularies, model, ids_only))
    return version


def _warmup_batches(tokenizer: Any, exporter: Exporter, rows: int) -> list[list[str]]:
    """Builds requests of one row and of a full batch, with the minimum and maximum text length."""
    lines = sorted((line for line in exporter.inputs() if line.strip()), key=len)
    shortest = lines[0] if lines else "a"
    longest, tokens = shortest, 0
    for line in lines:
        tokens += len(tokenizer.encode([line])[0])
        longest = f"{longest} {line}"
        if tokens >= exporter.limit:
            break
    return [[shortest], [longest], [shortest] * rows, [longest] * rows]


def _size_report(version: Path, vocabularies: Sequence[Any], model: Any, ids_only: bool) -> str:
    total = sum(file.stat().st_size for file in version.rglob("*") if file.is_file())
    content = sum(weight.value.numpy().nbytes for weight in model.weights)
    if not ids_only:
        # Count a joint vocabulary once: source and target are then the same object.
        distinct = {id(vocabulary): vocabulary for vocabulary in vocabularies}
        content += sum(len(vocabulary.to_bytes()) for vocabulary in distinct.values())
    excess = 100 * (total / content - 1)
    return f"{total / 1e6:.1f} MB, {excess:.1f} % more than weights and vocabulary"
