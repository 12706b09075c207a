"""benchmarks/peers/compare.py runs, and counts the operations of a training."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[1]
PEERS = ROOT / "benchmarks" / "peers"
PARTS = (
    "Training, the shape of `transformer-small`",
    "The machine's ceiling",
    "Decoding, beam 5, batch 32",
    "to the first translated sentence",
)


def load(name):
    specification = importlib.util.spec_from_file_location(name, PEERS / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_peers_benchmark_runs_in_smoke_mode(tmp_path):
    output = run(PEERS / "compare.py", "--smoke", "--work", tmp_path)
    assert "skipped" not in output
    for part in PARTS:
        # Up to the next table's title.
        [text] = [text for text in split(output) if part in text.partition("\n")[0]]
        rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line[:1] == "|"][2:]
        assert rows, text
        for _, *cells in rows:
            for cell in cells:
                figures = [float(f.replace(",", "")) for f in re.findall(r"[\d.,]+", cell)]
                assert figures and all(figure >= 0 for figure in figures), cell
        # Of what is measured none is 0.
        assert all(float(re.findall(r"[\d.]+", row[1])[0]) > 0 for row in rows), text

    # And its run by the program about long targets.
    lengths = ("--length", "3", "--length", "20")
    output = run(PEERS / "long_targets.py", "--work", tmp_path, *lengths, "--repeat", "1")
    rows = [line.strip("| ").split(" | ") for line in output.splitlines() if line[:1] == "|"][2:]
    assert [row[0] for row in rows] == ["3", "20"]
    assert all(float(figure) > 0 for row in rows for figure in row), output


def run(*command):
    """What one of the programs prints."""
    result = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def split(output):
    """Each title with what is below it."""
    titles = "|".join(map(re.escape, ("Training, ", "The machine's", "Decoding, ", "From the ")))
    return re.split(rf"\n(?={titles})", output)


def test_transformer_operation_count_equals_a_sum_by_hand():
    """Against sums written out for one layer of each, 3 source and 2 target steps.

    units 4, inner 8, vocabulary 10. Encoder: projections 4 x 16, feed-forward 2 x 32, so 128
    weights for each of 3 steps, and two products of attention over 3 steps. Decoder: the same for
    each of 2 steps, attention over 2 steps; of the attention over the source queries and outputs
    for 2 steps, keys and values for 3, and both products. Scores: 2 x 4 x 10. A weight is two
    operations, and the backward pass is twice the forward pass.
    """
    operations = load("operations")

    class Model:
        num_encoder_layers = num_decoder_layers = 1
        units, feedforward_units = 4, 8

    encoder = 3 * 128 + 2 * (3 * 3 * 4)
    decoder = 2 * 128 + 2 * (2 * 2 * 4)
    crossing = 2 * 2 * 16 + 3 * 2 * 16 + 2 * (2 * 3 * 4)
    whole = 3 * 2 * (encoder + decoder + crossing + 2 * 4 * 10)
    assert operations.transformer(Model, 3, 2, 10) == pytest.approx(whole / 2)


def test_recurrent_operation_count_equals_a_sum_by_hand():
    """Each matrix of OpenNMT-tf's shape, for sources of 20 and targets of 10."""
    operations = load("operations")
    source = 2 * (512 * 1024) + 512 * 512
    target = 1280 * 2048 + 512 * 512 + 1024 * 512 + 512 * 8000
    attention = 2 * 20 * 512
    whole = 6 * (20 * source + 10 * (target + attention))
    assert operations.rnn(20, 10, 8000) == pytest.approx(whole / 10)


def test_benchmark_table_shows_small_figures_with_three_digits():
    digits = load("table").digits
    assert [digits(figure) for figure in (3210.4, 99.96, 0.4217)] == ["3210", "100", "0.422"]
