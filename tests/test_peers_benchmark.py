"""benchmarks/peers/compare.py runs and counts the operations of a training step correctly."""

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


def load(name, folder=PEERS):
    specification = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.weekly
def test_peers_benchmark_runs_in_smoke_mode(tmp_path):
    output = run(PEERS / "compare.py", "--smoke", "--work", tmp_path)
    assert "skipped" not in output
    for part in PARTS:
        # A part starts with the title of its table and ends before the next title.
        [text] = [text for text in split(output) if part in text.partition("\n")[0]]
        rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line[:1] == "|"][2:]
        assert rows, text
        for _, *cells in rows:
            for cell in cells:
                figures = [float(f.replace(",", "")) for f in re.findall(r"[\d.,]+", cell)]
                assert figures and all(figure >= 0 for figure in figures), cell
        # Every measured value is above 0.
        assert all(float(re.findall(r"[\d.]+", row[1])[0]) > 0 for row in rows), text

    # The benchmark of long targets runs as well.
    lengths = ("--length", "3", "--length", "20")
    output = run(PEERS / "long_targets.py", "--work", tmp_path, *lengths, "--repeat", "1")
    rows = [line.strip("| ").split(" | ") for line in output.splitlines() if line[:1] == "|"][2:]
    assert [row[0] for row in rows] == ["3", "20"]
    assert all(float(figure) > 0 for row in rows for figure in row), output


def run(*command):
    """Runs a benchmark script and returns its output."""
    result = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def split(output):
    """Splits the output before each table title."""
    titles = "|".join(map(re.escape, ("Training, ", "The machine's", "Decoding, ", "From the ")))
    return re.split(rf"\n(?={titles})", output)


def test_transformer_operation_count_equals_a_sum_by_hand():
    """One encoder and one decoder layer, 3 source and 2 target steps.

    The model has 4 units, 8 feed-forward units and a vocabulary of 10. Encoder: 4 x 16 projection
    and 2 x 32 feed-forward weights, 128 in total, for each of 3 steps, and 2 attention products
    over 3 steps. Decoder: the same with 2 steps. Cross-attention: queries and outputs for 2 steps,
    keys and values for 3 steps, and 2 attention products. Logits: 2 x 4 x 10. Each weight counts
    2 operations, and the backward pass counts twice the forward pass.
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
    """Sums all matrices of OpenNMT-tf's model for 20 source and 10 target steps."""
    operations = load("operations")
    source = 2 * (512 * 1024) + 512 * 512
    target = 1280 * 2048 + 512 * 512 + 1024 * 512 + 512 * 8000
    attention = 2 * 20 * 512
    whole = 6 * (20 * source + 10 * (target + attention))
    assert operations.rnn(20, 10, 8000) == pytest.approx(whole / 10)


def test_benchmark_table_shows_small_figures_with_three_digits():
    digits = load("table", PEERS.parent).digits
    assert [digits(figure) for figure in (3210.4, 99.96, 0.4217)] == ["3210", "100", "0.422"]
