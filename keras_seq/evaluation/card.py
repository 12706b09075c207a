"""The section of a run's model card that reports test sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from keras_seq.evaluation.values import Evaluation
from keras_seq.run import Run
from keras_seq.settings import METRICS

_HEADING = "## Test sets"
# Test sets in a card; the oldest make room for new ones.
_MAX_SETS = 50


def add_to_card(run: Run, name: str, evaluation: Evaluation) -> None:
    """Stores the evaluation of a test set, and reports all stored evaluations in the model card.

    `name` is the name of the test set. Evaluations of other checkpoints are dropped. Raises OSError
    if a file cannot be written.
    """
    kept = {name: evaluation.to_dict()}
    for key, values in reversed(run.read_evaluations().items()):
        if len(kept) < _MAX_SETS and _is_of_step(values, evaluation.step):
            kept.setdefault(key, values)
    kept = dict(reversed(kept.items()))
    run.write_evaluations(kept)
    card = run.read_card().partition(f"\n{_HEADING}\n")[0].rstrip("\n")
    run.write_card(f"{card}\n\n{_HEADING}\n\n{_table(kept, evaluation.step)}")


def _is_of_step(values: Any, step: int) -> bool:
    """Tests if a stored evaluation is of a step, and can be shown."""
    try:
        return bool(values["step"] == step) and bool([*_rows("", values)])
    except (AttributeError, KeyError, TypeError, ValueError):
        return False


def _table(evaluations: Mapping[str, Mapping[str, Any]], step: int) -> str:
    rows = [row for name, values in evaluations.items() for row in _rows(name, values)]
    lines = [
        "| test set | metric | value | 95 % interval | baseline | |",
        "|---|---|---|---|---|---|",
    ]
    table = [f"Of the checkpoint at step {step:,}.", "", *lines, *rows, ""]
    for name, values in evaluations.items():
        if values.get("beats_baseline") is False:
            table += [
                f"On {name}, the model is not better than its baseline, which needs no model."
            ]
            table += [""]
    return "\n".join(table)


def _rows(name: str, values: Mapping[str, Any]) -> Iterable[str]:
    baseline = values["baseline"] or {"name": "", "metrics": {}}
    for key, metric in values["metrics"].items():
        # The plugin of a metric may be missing.
        digits = METRICS[key].digits if key in METRICS else 4
        interval = ""
        if metric["interval"] is not None:
            low, high = (metric["mean"] + sign * metric["interval"] for sign in (-1, 1))
            interval = f"{low:.{digits}f} to {high:.{digits}f}"
        other = baseline["metrics"].get(key)
        text = "" if other is None else f"{other['value']:.{digits}f} ({baseline['name']})"
        shown = "infinite" if metric["value"] is None else f"{metric['value']:.{digits}f}"
        yield (
            f"| {name}, {values['lines']:,} lines | {metric['name']} | {shown} | {interval} | "
            f"{text} | `{metric['signature']}` |"
        )
