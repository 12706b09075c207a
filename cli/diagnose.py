"""`keras-seq diagnose`: separates search errors from model errors."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keras_seq_cli.output import check_writable, emit, notice
from keras_seq_cli.quiet import import_quietly
from keras_seq_cli.search_options import RERANK_OPTIONS, with_search_options
from keras_seq_cli.shared_options import Ensemble, Json, To, Which

if TYPE_CHECKING:
    from keras_seq import Diagnosis
    from keras_seq.analysis.diagnosis.result import Line, Summary

# Omit these search options, because error analysis uses beam search with --beam-sizes.
_OMITTED = (
    *("method", "beam_size", "n_best", "temperature", "top_k", "top_p", "seed"),
    *RERANK_OPTIONS,
)


@functools.partial(with_search_options, without=_OMITTED)
def diagnose(
    run: Annotated[str, typer.Argument(help="Run directory.")],
    source: Annotated[str, typer.Argument(help="File of sources; - for stdin.")],
    reference: Annotated[str, typer.Argument(help="File of references; - for stdin.")],
    beam_sizes: Annotated[
        str,
        typer.Option(help="Beam sizes; errors of the first are analyzed, the others are compared."),
    ] = "5,10,50",
    as_json: Json = False,
    html: Annotated[
        str | None, typer.Option("--html", help="HTML file with a table of all lines.")
    ] = None,
    worst: Annotated[
        int, typer.Option(min=0, help="Examples of each kind of error in the table.")
    ] = 3,
    to: To = None,
    which: Which = "best",
    ensemble: Ensemble = None,
    *,
    search: dict[str, Any],
) -> None:
    """Classify wrong translations as search errors or model errors.

    Search error: the model scores the reference higher than its output, but the search does not
    find the reference. Model error: the model scores its output higher than the reference.
    """
    from keras_seq.analysis.diagnosis.settings import diagnosis_settings
    from keras_seq.operating_system import usable_cores
    from keras_seq.process.threads import configure_threads
    from keras_seq.run import Run
    from keras_seq.text import InputError, check_same_length, read_pairs, with_languages

    sizes = _parse_sizes(beam_sizes)
    reading = read_pairs(source, reference, notice=notice)
    check_same_length(source, reference)
    if html == "-":
        raise typer.BadParameter("received -, expected the name of a file", param_hint="--html")
    if html is not None:
        check_writable(html)
    opened = Run.open(run, notice=notice)
    opened.require_task("translate")
    opened.require_weights(which)
    diagnosis_settings(opened.settings, sizes, search)
    pairs = list(reading)
    if not pairs:
        raise InputError(f"{source}: empty, expected at least one line")
    sources = with_languages([pair[0] for pair in pairs], opened.languages, to)
    references = [pair[1] for pair in pairs]
    configure_threads(usable_cores())
    module = import_quietly("keras_seq.analysis.diagnosis.diagnosing")
    try:
        diagnosis = module.diagnose(
            run,
            sources,
            references,
            beam_sizes=sizes,
            which=which,
            ensemble=ensemble or (),
            notice=notice,
            **search,
        )
    except module.LongTargetError as error:
        name = "standard input" if reference == "-" else reference
        raise InputError(f"{name}:{error.index + 1}: {error.what}") from None
    names = {"run": Path(run).resolve().name, "checkpoint": which}
    if html is not None:
        diagnosis.page(**names).save(html)
        notice(f"{html} written")
    if as_json:
        emit([json.dumps(names | diagnosis.to_dict(), ensure_ascii=False, indent=1)])
    else:
        emit(_table(diagnosis, worst))


def _parse_sizes(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"received {text!r}, expected beam sizes separated by commas, as in 5,10,50",
            param_hint="'--beam-sizes'",
        ) from None


def _table(diagnosis: Diagnosis, worst: int) -> Iterator[str]:
    totals, search = diagnosis.totals, diagnosis.search
    first, *others = diagnosis.beams
    yield (
        f"{totals['lines']:,} lines, beam {first}, objective: log-probability "
        f"({search.length_normalization} normalization, alpha {search.alpha:g})"
    )
    yield ""
    rows = [
        ("search errors", "search_errors", "the model prefers the reference"),
        ("  out of reach", "out_of_reach", "limits or rules forbid the reference"),
        ("model errors", "model_errors", "the model prefers its output"),
        ("ties", "ties", "it prefers neither"),
        ("  the same", "same", "the output is the reference"),
        ("not judged", "not_judged", "the source is blank"),
        ("wider is better", "wider_is_better", "a wider beam finds a higher objective"),
        ("truncated sources", "truncated_sources", "longer than data.max_source_length"),
    ]
    for name, key, meaning in rows:
        count = totals[key]
        is_hidden = key in ("out_of_reach", "not_judged", "truncated_sources") and not count
        if not is_hidden and (others or key != "wider_is_better"):
            share = 100 * count / totals["lines"]
            yield f"{name:<16}{count:>8,}{share:>7.1f} %  {meaning}"
    yield ""
    yield from _beam_rows(diagnosis)
    for verdict, title in (
        ("search error", "The clearest search errors"),
        ("model error", "The clearest model errors"),
    ):
        lines = [line for line in diagnosis.lines if line.verdict == verdict]
        lines.sort(key=lambda line: -abs(line.margin))
        if lines[:worst]:
            yield from ("", f"{title} (objective of reference and output)")
        for line in lines[:worst]:
            yield from _line_rows(line)


def _beam_rows(diagnosis: Diagnosis) -> Iterator[str]:
    names = ("beam", "BLEU", "objective", "length", "search err.", "model err.", "ties", "copies")
    rows: list[Sequence[str]] = [(*names, "repetitions", "empty", "truncated")]
    for beam, summary in diagnosis.beams.items():
        score = f"{summary.bleu.value:.2f}" if summary.bleu else ""
        verdicts = (summary.search_errors, summary.model_errors, summary.ties)
        rows.append((str(beam), score, *_numbers(summary, verdicts), f"{summary.truncated:,}"))
    rows.append(("reference", "", *_numbers(diagnosis.references, ("", "", "")), ""))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)]
        yield "  ".join(cells).rstrip()
    yield ""
    first = next(iter(diagnosis.beams))
    yield (
        f"BLEU of beam {first} with every search error replaced by its reference: "
        f"{diagnosis.oracle_bleu.value:.2f} ({diagnosis.oracle_bleu.signature})"
    )


def _numbers(summary: Summary, verdicts: Sequence[int | str]) -> list[str]:
    return [
        f"{summary.objective:.4f}",
        f"{summary.length_ratio:.3f}",
        *(f"{count:,}" if isinstance(count, int) else count for count in verdicts),
        *(f"{count:,}" for count in (summary.copies, summary.repetitions, summary.empty)),
    ]


def _line_rows(line: Line) -> Iterator[str]:
    signs = {
        f"the reference is {line.out_of_reach}": line.out_of_reach is not None,
        "a wider beam finds better": line.wider_is_better,
        "the source is truncated": line.source_truncated,
        "the output is truncated": line.first.truncated,
        "a copy": line.first.copies,
        "a repetition": line.first.repeats,
    }
    yield "; ".join(
        [f"line {line.number}", *(sign for sign, is_present in signs.items() if is_present)]
    )
    yield f"{'':>12}source     {line.source}"
    yield f"{line.reference.objective:>10.4f}  reference  {line.reference.text}"
    yield f"{line.first.objective:>10.4f}  output     {line.first.text}"
