"""`keras-seq diagnose`: was it the model's fault, or the search's?"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keras_seq_cli.checkpoint_option import Which
from keras_seq_cli.output import emit, notice, why_not_written
from keras_seq_cli.quiet import import_quietly
from keras_seq_cli.search_options import with_search_options

if TYPE_CHECKING:
    from keras_seq import Diagnosis
    from keras_seq.analysis.diagnosis.result import Line, Summary

# A diagnosis is of a beam, and has an option for its sizes.
_NOT_ASKED = ("method", "beam_size", "n_best", "temperature", "top_k", "top_p", "seed")


@functools.partial(with_search_options, without=_NOT_ASKED)
def diagnose(
    run: Annotated[str, typer.Argument(help="Directory that train made.")],
    source: Annotated[str, typer.Argument(help="File of sources; - for stdin.")],
    reference: Annotated[str, typer.Argument(help="File of their references; - for stdin.")],
    beam: Annotated[
        str, typer.Option(help="Beam sizes: the first is judged, and compared with the others.")
    ] = "5,10,50",
    as_json: Annotated[
        str | None, typer.Option("--json", help="File for all of it as JSON; - for stdout.")
    ] = None,
    html: Annotated[
        str | None, typer.Option("--html", help="File for a page to sort and read the lines in.")
    ] = None,
    worst: Annotated[
        int, typer.Option(min=0, help="Lines of each kind of error in the table.")
    ] = 3,
    which: Which = "best",
    ensemble: Annotated[
        list[str] | None,
        typer.Option(
            help="Another run, with the same vocabulary, that translates together with this one; "
            "may be given again."
        ),
    ] = None,
    *,
    search: dict[str, Any],
) -> None:
    """Say of each line whether a bad translation is the model's fault or the search's.

    Where the model prefers the reference to its output, the search missed it: a search error.
    """
    from keras_seq.analysis.diagnosis.settings import diagnosis_settings
    from keras_seq.run import Run
    from keras_seq.runtime.threads import configure_threads, usable_cores
    from keras_seq.text import InputError, check_same_length, read_pairs

    beams = _beams(beam)
    reading = read_pairs(source, reference, notice=notice)
    check_same_length(source, reference)
    if html == "-":
        raise typer.BadParameter("names a file, not stdout", param_hint="--html")
    for path in (as_json, html):
        _check_writable(path)
    if (
        as_json is not None
        and html is not None
        and Path(as_json).absolute() == Path(html).absolute()
    ):
        raise InputError(f"{html}: the JSON and the page cannot go to one file")
    opened = Run.open(run, notice=notice)
    opened.require_task("translate")
    opened.require_weights(which)
    diagnosis_settings(opened.settings, beams, search)
    pairs = list(reading)
    if not pairs:
        raise InputError(f"{source}: empty, there is nothing to diagnose")
    sources, references = ([pair[side] for pair in pairs] for side in (0, 1))
    configure_threads(usable_cores())
    heavy = import_quietly("keras_seq.analysis.diagnosis.diagnosing")
    try:
        found = heavy.diagnose(
            run,
            sources,
            references,
            beams=beams,
            which=which,
            ensemble=ensemble or (),
            notice=notice,
            **search,
        )
    except heavy.LongTargetError as error:
        name = "standard input" if reference == "-" else reference
        raise InputError(f"{name}:{error.index + 1}: {error.what}") from None
    made = {"run": Path(run).resolve().name, "checkpoint": which} | found.to_dict()
    if html is not None:
        from keras_seq.analysis.pages import make_page

        _write(html, make_page("diagnosis", made))
    if as_json is not None and as_json != "-":
        _write(as_json, json.dumps(made, ensure_ascii=False, indent=1) + "\n")
    if as_json == "-":
        emit([json.dumps(made, ensure_ascii=False, indent=1)])
    else:
        emit(_table(found, worst))


def _beams(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"{text!r}: expected beam sizes with commas between them, as in 5,10,50",
            param_hint="'--beam'",
        ) from None


def _check_writable(path: str | None) -> None:
    from keras_seq.text import InputError

    if path in (None, "-"):
        return
    if wrong := why_not_written(str(path)):
        raise InputError(wrong)


def _write(path: str, text: str) -> None:
    # A lone surrogate is no text, and no reason to lose a long search.
    Path(path).write_text(text, encoding="utf-8", errors="replace", newline="\n")
    notice(f"{path} written")


def _table(found: Diagnosis, worst: int) -> Iterator[str]:
    totals, search = found.totals, found.search
    first, *others = found.beams
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
        ("cut sources", "cut_sources", "longer than data.max_source_length"),
    ]
    for name, key, meaning in rows:
        count = totals[key]
        needless = key in ("out_of_reach", "not_judged", "cut_sources") and not count
        if not needless and (others or key != "wider_is_better"):
            share = 100 * count / totals["lines"]
            yield f"{name:<16}{count:>8,}{share:>7.1f} %  {meaning}"
    yield ""
    yield from _beam_rows(found)
    for verdict, title in (
        ("search error", "The clearest search errors"),
        ("model error", "The clearest model errors"),
    ):
        lines = [line for line in found.lines if line.verdict == verdict]
        lines.sort(key=lambda line: -abs(line.margin))
        if lines[:worst]:
            yield from ("", f"{title} (objective of reference and output)")
        for line in lines[:worst]:
            yield from _line_rows(line)


def _beam_rows(found: Diagnosis) -> Iterator[str]:
    names = ("beam", "BLEU", "objective", "length", "search err.", "model err.", "ties", "copies")
    rows: list[Sequence[str]] = [(*names, "repetitions", "empty", "cut")]
    for beam, one in found.beams.items():
        score = f"{one.bleu.value:.2f}" if one.bleu else ""
        verdicts = (one.search_errors, one.model_errors, one.ties)
        rows.append((str(beam), score, *_numbers(one, verdicts), f"{one.cut:,}"))
    rows.append(("reference", "", *_numbers(found.references, ("", "", "")), ""))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)]
        yield "  ".join(cells).rstrip()
    yield ""
    first = next(iter(found.beams))
    yield (
        f"BLEU of beam {first} with every search error replaced by its reference: "
        f"{found.oracle_bleu.value:.2f} ({found.oracle_bleu.signature})"
    )


def _numbers(one: Summary, verdicts: Sequence[int | str]) -> list[str]:
    return [
        f"{one.objective:.4f}",
        f"{one.length_ratio:.3f}",
        *(f"{count:,}" if isinstance(count, int) else count for count in verdicts),
        *(f"{count:,}" for count in (one.copies, one.repetitions, one.empty)),
    ]


def _line_rows(line: Line) -> Iterator[str]:
    signs = {
        f"the reference is {line.out_of_reach}": line.out_of_reach is not None,
        "a wider beam finds better": line.wider_is_better,
        "the source is cut": line.source_cut,
        "the output is cut": line.first.cut,
        "a copy": line.first.copies,
        "a repetition": line.first.repeats,
    }
    yield "; ".join([f"line {line.number}", *(sign for sign, seen in signs.items() if seen)])
    yield f"{'':>12}source     {line.source}"
    yield f"{line.reference.objective:>10.4f}  reference  {line.reference.text}"
    yield f"{line.first.objective:>10.4f}  output     {line.first.text}"
