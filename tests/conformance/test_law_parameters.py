"""Names, shapes and dtypes of the weights stay as the golden text has them."""

from conformance.golden import FOLDER, parameter_tree
from conformance.harness import build
from conformance.table import ROWS, every_row


@every_row
def test_parameter_tree_equals_the_golden_text(row):
    golden = (FOLDER / f"{row.name}.txt").read_text(encoding="utf-8")
    assert parameter_tree(build(row)) == golden, (
        "If the change is meant: PYTHONPATH=tests python -m conformance.golden"
    )


def test_every_golden_text_has_a_row():
    assert {path.stem for path in FOLDER.glob("*.txt")} == {row.name for row in ROWS}
