"""`keras-seq translate`: translates text line by line."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NoReturn

import typer

from keras_seq_cli.output import notice
from keras_seq_cli.output_options import OutputOptions, with_output_options
from keras_seq_cli.search_options import with_search_options
from keras_seq_cli.shared_options import (
    Ensemble,
    Output,
    Overwrite,
    Runner,
    To,
    Trust,
    Which,
    Workers,
)
from keras_seq_cli.signals import exit_on_sigterm
from keras_seq_cli.translate_export import (
    ONNX_OPTIONS,
    SAVED_MODEL_OPTIONS,
    ExportModel,
    OnnxModel,
    find_export,
    is_onnx_export,
    reject_options,
)
from keras_seq_cli.translate_run import RunModel, load_ctranslate2
from keras_seq_cli.translate_text import TextJob, translate_text


@with_search_options
@with_output_options
def translate(
    run: Annotated[str, typer.Argument(help="Run directory, or export.")],
    text: Annotated[
        str | None, typer.Argument(help="A sentence, or a file of sentences; stdin by default.")
    ] = None,
    output: Output = None,
    to: To = None,
    scores: Annotated[bool, typer.Option("--scores", help="Print score<TAB>translation.")] = False,
    engine: Annotated[
        Literal["tensorflow", "ctranslate2", "onnx"],
        typer.Option(
            help="Inference engine; ctranslate2 is an extra, for Transformers; onnx is the one of "
            "an ONNX export."
        ),
    ] = "tensorflow",
    quantize: Annotated[
        str | None, typer.Option(help="Quantization of ctranslate2: float32 or int8.")
    ] = None,
    prefixes: Annotated[
        str | None,
        typer.Option(help="File with the beginning of each translation; blank lines for none."),
    ] = None,
    which: Which = "best",
    ensemble: Ensemble = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", help="File to translate, or a pattern, 'texts/*.en'; repeatable."),
    ] = None,
    output_dir: Annotated[
        str | None, typer.Option(help="Output directory, with a file for each --input.")
    ] = None,
    workers: Workers = None,
    runner: Runner = "local",
    overwrite: Overwrite = False,
    trust: Trust = False,
    *,
    outputs: OutputOptions,
    search: dict[str, Any],
) -> None:
    """Translate a sentence, a file, stdin, or many files. Blank lines stay blank.

    If a job with --input was interrupted, the same command resumes it.

    RUN can also be an ONNX export or a SavedModel made by keras-seq export, or the directory of the
    versions of a SavedModel. An export contains its search settings and starts in less than half
    the time. Search options replace those of an ONNX export. Without --trust, a SavedModel with
    operations that keras-seq never exports is rejected.
    """
    options = _Options(
        run=run,
        text=text,
        output=output,
        to=to,
        scores=scores,
        engine=engine,
        quantize=quantize,
        prefixes=prefixes,
        which=which,
        ensemble=tuple(ensemble or ()),
        inputs=inputs or [],
        output_dir=output_dir,
        workers=workers,
        runner=runner,
        overwrite=overwrite,
        trust=trust,
        outputs=outputs,
        search=search,
    )
    if is_onnx_export(run):
        if trust:
            _refuse_trust("an ONNX export")
        _check_export_options(options, "onnx", ONNX_OPTIONS)
        _translate_with_export(options, OnnxModel(run, search))
        return
    version = find_export(run)
    if version is not None:
        _check_export_options(options, "tensorflow", SAVED_MODEL_OPTIONS)
        model = ExportModel(version, search.get("batch_size"), trust=trust)
        _translate_with_export(options, model)
    else:
        _translate_with_run(options)


@dataclass(frozen=True)
class _Options:
    """The options of `keras-seq translate`."""

    run: str
    text: str | None
    output: str | None
    to: str | None
    scores: bool
    engine: Literal["tensorflow", "ctranslate2", "onnx"]
    quantize: str | None
    prefixes: str | None
    which: str
    ensemble: tuple[str, ...]
    inputs: list[str]
    output_dir: str | None
    workers: int | None
    runner: str
    overwrite: bool
    trust: bool
    outputs: OutputOptions
    search: dict[str, Any]

    @property
    def job(self) -> TextJob:
        """The options of `translate_text`."""
        return TextJob(self.prefixes, self.scores, self.outputs, self.to)


def _refuse_trust(received: str) -> NoReturn:
    raise typer.BadParameter(f"expected a SavedModel, received {received}", param_hint="'--trust'")


def _check_export_options(options: _Options, engine: str, allowed: Collection[str]) -> None:
    if options.engine == "onnx" and engine != "onnx":
        raise typer.BadParameter(
            "needs an ONNX export, received a SavedModel: omit --engine, or make an ONNX export: "
            "keras-seq export RUN NEW_DIR --format onnx",
            param_hint="'--engine'",
        )
    others = {
        "engine": options.engine not in ("tensorflow", engine),
        "quantize": options.quantize is not None,
        "prefixes": options.prefixes is not None,
        "which": options.which != "best",
        "ensemble": bool(options.ensemble),
        "input": bool(options.inputs),
        "output_dir": options.output_dir is not None,
        "workers": options.workers is not None,
        "runner": options.runner != "local",
        "overwrite": options.overwrite,
    }
    reject_options(options.outputs, options.search, others, allowed)


def _translate_with_export(options: _Options, model: Any) -> None:
    translate_text(model, options.text, options.output, options.job)


def _translate_with_run(options: _Options) -> None:
    from keras_seq.run import Run
    from keras_seq.text import with_languages

    if options.trust:
        _refuse_trust("a run")
    opened = Run.open(options.run, notice=notice)
    opened.require_task("translate")
    opened.require_weights(options.which)
    settings = opened.settings.with_search(options.search).search
    _check(options)
    # An unknown language is an error before the model is loaded.
    with_languages((), opened.languages, options.to)
    if options.inputs:
        _translate_files(options)
        return
    model = RunModel(
        options.run,
        opened,
        options.which,
        options.search,
        settings,
        options.engine,
        options.quantize,
        options.ensemble,
        options.outputs,
    )
    translate_text(model, options.text, options.output, options.job)


def _check(options: _Options) -> None:
    """Raises BadParameter for options that cannot be combined."""
    if options.engine == "onnx":
        raise typer.BadParameter(
            f"needs an ONNX export: keras-seq export {options.run} NEW_DIR --format onnx",
            param_hint="'--engine'",
        )
    ctranslate2 = options.engine == "ctranslate2"
    if options.quantize is not None and not ctranslate2:
        raise typer.BadParameter("needs --engine ctranslate2", param_hint="'--quantize'")
    if options.prefixes is not None and options.inputs:
        raise typer.BadParameter("not with --input", param_hint="'--prefixes'")
    for name, value in (("ensemble", options.ensemble), ("prefixes", options.prefixes)):
        if value and ctranslate2:
            raise typer.BadParameter("not with --engine ctranslate2", param_hint=f"'--{name}'")
    if options.prefixes is not None and "prefix" in options.search:
        raise typer.BadParameter("not with --prefixes", param_hint="'--prefix'")
    options.outputs.check(
        engine=options.engine,
        many_files=bool(options.inputs),
        ensemble=bool(options.ensemble),
        prefixes=options.prefixes is not None,
    )
    if options.inputs:
        if options.output_dir is None or options.text is not None or options.output is not None:
            raise typer.BadParameter(
                "needs --output-dir, and no other text or --output", param_hint="'--input'"
            )
        return
    for name, is_present in (
        ("output-dir", options.output_dir is not None),
        ("workers", options.workers is not None),
        ("runner", options.runner != "local"),
        ("overwrite", options.overwrite),
    ):
        if is_present:
            raise typer.BadParameter("needs --input", param_hint=f"'--{name}'")


def _translate_files(options: _Options) -> None:
    from keras_seq.jobs import require_ray, run_locally, run_on_ray, translate_files

    if options.engine == "ctranslate2":
        # Load once in this process, to report errors before the workers start.
        load_ctranslate2(options.run, options.which, options.quantize, options.search)
    if options.runner == "ray":
        require_ray()
    assert options.output_dir is not None and options.engine != "onnx"
    with exit_on_sigterm():
        job = translate_files(
            options.run,
            options.inputs,
            options.output_dir,
            which=options.which,
            ensemble=options.ensemble,
            search=options.search,
            engine=options.engine,
            quantize=options.quantize or "float32",
            scores=options.scores,
            to=options.to,
            workers=options.workers,
            overwrite=options.overwrite,
            runner=run_on_ray if options.runner == "ray" else run_locally,
            notice=notice,
        )
    notice(f"{options.output_dir}: translated {job.files:,} files with {job.lines:,} lines")
