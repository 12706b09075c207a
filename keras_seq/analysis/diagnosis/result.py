"""Result of a diagnosis: lines with their targets, and summaries."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from keras_seq.analysis.pages import Page, make_page
from keras_seq.scoring import Score
from keras_seq.settings import SearchSettings

Verdict = Literal["search error", "model error", "tie"]
VERDICTS: tuple[Verdict, ...] = ("search error", "model error", "tie")
_REPORTED_SETTINGS = (
    "length_normalization", "alpha", "patience", "min_length", "min_length_ratio", "max_length",
    "max_length_ratio", "max_length_extra", "no_repeat_ngram_size", "forbidden", "prefix",
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A reference or the output of a beam, scored by the model.

    Attributes:
        text: The line.
        objective: log P(y | x), normalized by length like the search, by forced decoding of the
            tokens and the end token.
        tokens: The number of tokens, with the end token.
        copies: True if the text is nearly the source, see `is_copy`.
        repeats: True if the text repeats itself, see `repeats`.
        empty: True if the text is blank.
        chrf: For an output: chrF of this line against its reference.
        truncated: For an output: True if it reached the maximum length before the end token.
        verdict: For an output: `"search error"` if the model prefers the reference, so a better
            search would not have returned this output; `"model error"` if the model prefers the
            output; `"tie"` if neither, or if both texts are equal. None for a blank source, which
            is not searched.
    """

    text: str
    objective: float
    tokens: int
    copies: bool
    repeats: bool
    empty: bool
    chrf: float | None = None
    truncated: bool = False
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Line:
    """One line: its reference, the output of each beam, and the verdict on the first beam.

    Attributes:
        number: The number of the line, from 1.
        source: The line.
        reference: The reference as a `Target`.
        outputs: The outputs by beam size, in the requested order.
        same: True if the first output equals the reference, which is a tie.
        wider_is_better: True if a wider beam than the first found a higher objective.
        source_truncated: True if the source was truncated at its maximum length.
        out_of_reach: Why no search with these settings can find the reference, such as
            `"longer than the limit"`; None if a search can.
    """

    number: int
    source: str
    reference: Target
    outputs: dict[int, Target]
    same: bool
    wider_is_better: bool
    source_truncated: bool
    out_of_reach: str | None

    @property
    def first(self) -> Target:
        """The output of the first beam. Only this output decides the verdict on the line."""
        return next(iter(self.outputs.values()))

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on the first output."""
        return self.first.verdict

    @property
    def margin(self) -> float:
        """The objective of the reference minus the objective of the first output."""
        return self.reference.objective - self.first.objective


@dataclass(frozen=True)
class Summary:
    """Figures over all outputs of a beam, or over all references.

    Attributes:
        bleu: The BLEU `Score`; None for references.
        objective: The mean over lines.
        length_ratio: The number of tokens divided by the number of tokens of the references.
        copies, repetitions, empty, truncated: Numbers of lines.
        search_errors, model_errors, ties: Numbers of lines.
    """

    bleu: Score | None
    objective: float
    length_ratio: float
    copies: int
    repetitions: int
    empty: int
    truncated: int
    search_errors: int
    model_errors: int
    ties: int

    def to_dict(self) -> dict[str, Any]:
        """Returns the figures, ready for JSON."""
        if self.bleu is not None:
            return vars(self) | {"bleu": _score(self.bleu)}
        judged = ("bleu", "truncated", "search_errors", "model_errors", "ties")
        return {name: value for name, value in vars(self).items() if name not in judged}


@dataclass(frozen=True)
class Diagnosis:
    """The lines of a diagnosis and their figures.

    Attributes:
        lines: Each `Line`.
        beams: A `Summary` of each beam, in the requested order; the first is judged.
        references: The `Summary` of the references.
        oracle_bleu: BLEU of the first beam with the reference in place of each output that is a
            search error: an upper bound of what a better search can gain with this model.
        search: Settings of the search of the first beam.
    """

    lines: list[Line]
    beams: dict[int, Summary]
    references: Summary
    oracle_bleu: Score
    search: SearchSettings

    @property
    def totals(self) -> dict[str, int]:
        """Numbers of lines. The four values after `lines` add up to `lines`."""
        lines = self.lines
        errors = [line for line in lines if line.verdict == "search error"]
        return {
            "lines": len(lines),
            "search_errors": len(errors),
            "model_errors": sum(line.verdict == "model error" for line in lines),
            "ties": sum(line.verdict == "tie" for line in lines),
            "not_judged": sum(line.verdict is None for line in lines),
            "same": sum(line.same for line in lines),
            "out_of_reach": sum(line.out_of_reach is not None for line in errors),
            "wider_is_better": sum(line.wider_is_better for line in lines),
            "truncated_sources": sum(line.source_truncated for line in lines),
        }

    def page(self, run: str = "", checkpoint: str | int = "best") -> Page:
        """Returns an HTML page with all lines, under the names of the run and the checkpoint."""
        return make_page("diagnosis", {"run": run, "checkpoint": checkpoint} | self.to_dict())

    def _repr_html_(self) -> str:
        return self.page()._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """Returns everything, ready for JSON; docs/diagnosis.md explains each key."""
        search = self.search.model_dump()
        return {
            "format": "keras-seq diagnosis 1",
            "search": {name: search[name] for name in _REPORTED_SETTINGS},
            "totals": self.totals,
            "beams": [{"beam": beam, **summary.to_dict()} for beam, summary in self.beams.items()],
            "references": self.references.to_dict(),
            "oracle_bleu": _score(self.oracle_bleu),
            "lines": [_line(line) for line in self.lines],
        }


def _line(line: Line) -> dict[str, Any]:
    fields = asdict(line)
    for name in ("chrf", "truncated", "verdict"):
        del fields["reference"][name]
    fields["outputs"] = [{"beam": beam} | output for beam, output in fields["outputs"].items()]
    return {"number": line.number, "verdict": line.verdict, "margin": line.margin} | fields


def _score(score: Score) -> dict[str, Any]:
    return {"value": score.value, "signature": score.signature}
