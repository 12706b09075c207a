"""`keras-seq score`: hypotheses and references to scores."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from keras_seq_cli.metric_options import Metrics, Tokenize, split_metrics
from keras_seq_cli.output import emit, notice

if TYPE_CHECKING:
    from keras_seq.scoring import Comparison, Score


def score(
    hypothesis: Annotated[
        list[str],
        typer.Argument(
            help="File of translations; - for stdin. Of several, the first "
            "is what the others are compared with."
        ),
    ],
    reference: Annotated[
        list[str],
        typer.Option("--reference", "-r", help="File of references; may be given again."),
    ],
    metric: Metrics = None,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Ignore case.")] = False,
    tokenize: Tokenize = None,
    paired: Annotated[
        Literal["bootstrap", "randomization"] | None,
        typer.Option(help="Test whether each differs from the first by more than chance."),
    ] = None,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="95 % intervals, by bootstrap resampling.")
    ] = False,
    samples: Annotated[
        int | None,
        typer.Option(min=1, help="Resamples or trials; sacreBLEU's 1,000 and 10,000 if absent."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON, every digit.")] = False,
) -> None:
    """Print BLEU, chrF and TER, or the metrics that --metric names, with their signatures."""
    from keras_seq.scoring import METRICS, compare, scores_by_name
    from keras_seq.text import InputError

    if paired and len(hypothesis) == 1:
        raise typer.BadParameter("compares systems: name two files or more", param_hint="--paired")
    if paired and confidence:
        raise typer.BadParameter("--paired gives intervals, too", param_hint="--confidence")
    if samples and not paired and not confidence:
        raise typer.BadParameter("needs --paired or --confidence", param_hint="--samples")
    metrics = split_metrics(metric) or list(METRICS)
    lines = _read(hypothesis, reference)
    systems = {name: lines[name] for name in hypothesis}
    references = [lines[name] for name in reference]
    options: dict[str, Any] = {"lowercase": lowercase, "tokenize": tokenize}
    found: dict[str, Sequence[Score | Comparison]] = {}
    try:
        if paired:
            tested = compare(
                systems, references, test=paired, samples=samples, metrics=metrics, **options
            )
            found |= tested
        else:
            for name, system in systems.items():
                scores = scores_by_name(
                    system,
                    references,
                    metrics,
                    confidence=confidence,
                    samples=samples,
                    **options,
                )
                found[name] = list(scores.values())
    except ValueError as error:
        raise InputError(str(error)) from None
    for name in hypothesis[1:] if paired else ():
        if systems[name] == systems[hypothesis[0]]:
            # sacreBLEU's p is the least that there is then: no resample has a larger difference.
            notice(f"{name}: the same lines as {hypothesis[0]}: its p means nothing")
    emit(_json_lines(found) if as_json else _text_lines(found))


def _read(hypotheses: list[str], references: list[str]) -> dict[str, list[str]]:
    """The lines of all files by name, as many in each."""
    from keras_seq.text import InputError, check_readable, read_lines

    names = [*hypotheses, *references]
    if names.count("-") > 1:
        raise InputError("standard input can be read once: name a file for the others")
    if len(set(hypotheses)) < len(hypotheses):
        raise InputError("a file of translations is named twice")
    for name in names:
        check_readable(name)
    lines = {name: list(read_lines(name, notice=notice)) for name in dict.fromkeys(names)}
    first = hypotheses[0]
    for name, found in lines.items():
        if not found:
            raise InputError(f"{name}: empty, there is nothing to score")
        if len(found) != len(lines[first]):
            raise InputError(
                f"{first} has {len(lines[first])} lines but {name} has {len(found)}: "
                "line N of one must go with line N of the other"
            )
    return lines


def _text_lines(found: dict[str, Sequence[Score | Comparison]]) -> Iterator[str]:
    for name, scores in found.items():
        for one in scores:
            yield one.text if len(found) == 1 else f"{name}\t{one.text}"


def _json_lines(found: dict[str, Sequence[Score | Comparison]]) -> Iterator[str]:
    """One object: the systems in order, the first the one compared with."""
    systems = [
        {"system": name, "scores": [vars(one) for one in scores]} for name, scores in found.items()
    ]
    yield json.dumps({"systems": systems}, ensure_ascii=False, indent=1)
