"""`keras-seq score`: scores hypotheses against references."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from keras_seq_cli.output import emit, notice
from keras_seq_cli.shared_options import Json, LowerCase, Metrics, Tokenize, split_metrics

if TYPE_CHECKING:
    from keras_seq.evaluation import MetricValue
    from keras_seq.scoring import Comparison, Score


def score(
    hypothesis: Annotated[
        list[str],
        typer.Argument(
            help="Files of hypotheses; - for stdin. --paired compares the first with the others."
        ),
    ],
    reference: Annotated[
        list[str], typer.Option("--reference", "-r", help="File of references; repeatable.")
    ],
    metric: Metrics = None,
    lowercase: LowerCase = False,
    tokenize: Tokenize = None,
    paired: Annotated[
        Literal["bootstrap", "randomization"] | None,
        typer.Option(help="Significance test of each system against the first."),
    ] = None,
    confidence: Annotated[
        bool,
        typer.Option(
            "--confidence", help="Compute 95 % confidence intervals by bootstrap resampling."
        ),
    ] = False,
    samples: Annotated[
        int | None,
        typer.Option(
            min=1, help="Bootstrap samples, 1,000 by default, or trials, 10,000 by default."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Score hypotheses by --metric, or by BLEU, chrF and TER with sacreBLEU signatures."""
    from keras_seq.scoring import METRICS, compare, scores_by_name
    from keras_seq.scoring.comparison import RESAMPLES
    from keras_seq.text import InputError

    _check_options(hypothesis, paired=paired, confidence=confidence, samples=samples)
    metrics = split_metrics(metric) or list(METRICS)
    of_plugins = _metrics_of_plugins(metrics)
    if of_plugins:
        _check_metrics_of_plugins(of_plugins[0], reference, paired)
    lines = _read(hypothesis, reference)
    systems = {name: lines[name] for name in hypothesis}
    references = [lines[name] for name in reference]
    own = [name for name in metrics if name not in of_plugins]
    options: dict[str, Any] = {"metrics": own, "lowercase": lowercase, "tokenize": tokenize}
    results: dict[str, Sequence[Score | Comparison | MetricValue]] = {}
    try:
        if paired:
            results |= compare(systems, references, test=paired, samples=samples, **options)
        else:
            options |= {"confidence": confidence, "samples": samples}
            for name, system in systems.items():
                values: dict[str, Any] = dict(scores_by_name(system, references, **options))
                if of_plugins:
                    from keras_seq.evaluation.plugin_values import plugin_values

                    count = (samples or RESAMPLES) if confidence else None
                    columns = _cased(system, lowercase), _cased(references[0], lowercase)
                    values |= plugin_values(*columns, of_plugins, count, lowercase)
                results[name] = [values[one] for one in metrics]
    except ValueError as error:
        raise InputError(str(error)) from None
    for name in hypothesis[1:] if paired else ():
        if systems[name] == systems[hypothesis[0]]:
            # All differences are 0, so sacreBLEU reports the smallest possible p value.
            notice(f"{name}: same lines as {hypothesis[0]}, so its p value is meaningless")
    emit(_json_lines(results) if as_json else _text_lines(results))


def _metrics_of_plugins(names: Sequence[str]) -> list[str]:
    """Imports the plugins, and returns the names of their metrics."""
    from keras_seq.plugins import added, import_plugins_of_environment

    import_plugins_of_environment()
    return [name for name in names if name in added("metric")]


def _check_metrics_of_plugins(name: str, references: list[str], paired: str | None) -> None:
    """Raises BadParameter for options that a metric of a plugin does not have."""
    if paired:
        raise typer.BadParameter(f"not with the metric {name!r} of a plugin", param_hint="--paired")
    if len(references) > 1:
        raise typer.BadParameter(
            f"received {len(references)} files, expected one: the metric {name!r} of a plugin "
            "compares with one",
            param_hint="--reference",
        )


def _cased(lines: list[str], lowercase: bool) -> list[str]:
    return [line.lower() for line in lines] if lowercase else lines


def _check_options(
    hypotheses: list[str], *, paired: str | None, confidence: bool, samples: int | None
) -> None:
    """Raises BadParameter for options that cannot be combined."""
    if paired and len(hypotheses) == 1:
        raise typer.BadParameter(
            "received one file of hypotheses, expected two or more", param_hint="--paired"
        )
    if paired and confidence:
        raise typer.BadParameter(
            "not with --paired, which computes intervals as well", param_hint="--confidence"
        )
    if samples and not paired and not confidence:
        raise typer.BadParameter("needs --paired or --confidence", param_hint="--samples")


def _read(hypotheses: list[str], references: list[str]) -> dict[str, list[str]]:
    """Reads all files into a dict; raises InputError if the numbers of lines differ."""
    from keras_seq.text import InputError, check_readable, read_lines

    names = [*hypotheses, *references]
    if names.count("-") > 1:
        raise InputError("standard input can be read only once: name a file instead of one -")
    if len(set(hypotheses)) < len(hypotheses):
        raise InputError("received the same file of hypotheses twice")
    for name in names:
        check_readable(name)
    lines = {name: list(read_lines(name, notice=notice)) for name in dict.fromkeys(names)}
    first = hypotheses[0]
    for name, content in lines.items():
        if not content:
            raise InputError(f"{name}: empty, expected at least one line")
        if len(content) != len(lines[first]):
            raise InputError(
                f"{first} has {len(lines[first])} lines but {name} has {len(content)}: "
                "line N of each file must belong to line N of the others"
            )
    return lines


def _text_lines(
    results: dict[str, Sequence[Score | Comparison | MetricValue]],
) -> Iterator[str]:
    for name, scores in results.items():
        for score in scores:
            yield score.text if len(results) == 1 else f"{name}\t{score.text}"


def _json_lines(
    results: dict[str, Sequence[Score | Comparison | MetricValue]],
) -> Iterator[str]:
    """Yields one JSON object with the scores of all systems."""
    systems = [
        {"system": name, "scores": [_fields(score) for score in scores]}
        for name, scores in results.items()
    ]
    yield json.dumps({"systems": systems}, ensure_ascii=False, indent=1)


def _fields(score: Any) -> dict[str, Any]:
    # The value of a metric of a plugin has its own form.
    fields: dict[str, Any] = score.to_dict() if hasattr(score, "to_dict") else vars(score)
    return fields
