"""`keras-seq evaluate`: a run and a test set to scores."""

from __future__ import annotations

import functools
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from keras_seq_cli.checkpoint_option import Which
from keras_seq_cli.metric_options import Metrics, Tokenize, split_metrics
from keras_seq_cli.output import emit, notice, why_not_written
from keras_seq_cli.quiet import import_quietly
from keras_seq_cli.search_options import with_search_options


# One output of each example is scored.
@functools.partial(with_search_options, without=("n_best",))
def evaluate(
    run: Annotated[str, typer.Argument(help="Directory that train made.")],
    pairs: Annotated[
        str | None, typer.Option(help="source<TAB>target lines; - for stdin. Task translate.")
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Source sentences, one per line, instead of --pairs.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Their references, line by line with --source.")
    ] = None,
    text: Annotated[str | None, typer.Option(help="Lines for a language model.")] = None,
    data: Annotated[
        str | None,
        typer.Option(help="text<TAB>label lines for a classifier; text<TAB>tags for a tagger."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="Columns of --pairs or --data, as source=1,target=3; the run's if absent."
        ),
    ] = None,
    metric: Metrics = None,
    tokenize: Tokenize = None,
    confidence: Annotated[
        bool,
        typer.Option(
            "--confidence/--no-confidence", help="95 % intervals, by bootstrap resampling."
        ),
    ] = True,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Resamples of the intervals; 1,000 if absent.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="File to write what the run wrote for each line."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON, every digit.")] = False,
    which: Which = "best",
    ensemble: Annotated[
        list[str] | None,
        typer.Option(
            help="Another run, with the same vocabulary, that is evaluated together with this "
            "one; may be given again."
        ),
    ] = None,
    *,
    search: dict[str, Any],
) -> None:
    """Decode a test set once and print all metrics of the run's task.

    Metrics: exact, cer, wer, chrf, bleu and ter of translations; perplexity of a language model;
    accuracy and macro_f1 of a classifier; accuracy, macro_f1 and entity_f1 of a tagger. The
    metric that chose the best checkpoint is printed first.
    """
    from keras_seq.evaluation import EvaluationFiles, check_options, evaluation_metrics
    from keras_seq.run import Run
    from keras_seq.text import InputError

    if samples and not confidence:
        raise typer.BadParameter("needs --confidence", param_hint="--samples")
    metrics = split_metrics(metric)
    opened = Run.open(run, notice=notice)
    check_options(opened, tokenize=tokenize, ensemble=ensemble or (), search=search)
    opened.require_weights(which)
    if output is not None:
        if opened.settings.task == "language-model":
            raise typer.BadParameter("a language model writes no text here", param_hint="--output")
        if wrong := why_not_written(output):
            raise InputError(wrong)
    examples = EvaluationFiles(pairs, source, target, text, data, columns).read(opened, notice)
    evaluation_metrics(opened, metrics, examples)
    sources, references = zip(*examples, strict=True)
    found = import_quietly("keras_seq.evaluation.evaluating").evaluate(
        run,
        sources,
        references,
        which=which,
        ensemble=ensemble or (),
        metrics=metrics,
        tokenize=tokenize,
        confidence=confidence,
        samples=samples,
        notice=notice,
        **search,
    )
    if output is not None:
        _write(output, found.outputs)
    if found.cut:
        notice(
            f"{found.cut:,} of {found.lines:,} lines cut at the longest input or output "
            "(data.max_source_length, search.max_length)"
        )
    notice(f"{run}: step {found.step:,}, {found.lines:,} lines")
    if as_json:
        made = {"run": Path(run).resolve().name, "checkpoint": which} | found.to_dict()
        emit([json.dumps(made, ensure_ascii=False, indent=1)])
    else:
        emit(one.text for one in found.metrics.values())


def _write(path: str, lines: Sequence[str]) -> None:
    from keras_seq.storage import write_file

    content = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
    write_file(Path(path), gzip.compress(content) if path.endswith(".gz") else content)
    notice(f"{path} written")
