"""The printed output and the picture of examples/kernel_regression.py."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")
PATH = Path(__file__).parents[2] / "examples" / "kernel_regression.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("kernel_regression", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_attention_is_the_closed_form_to_float_precision(example, monkeypatch, capsys, tmp_path):
    picture = tmp_path / "regression.png"
    monkeypatch.setattr(sys, "argv", ["kernel_regression.py", "--picture", str(picture)])
    example.main()
    said = capsys.readouterr().out.splitlines()
    assert float(said[0].split()[-1]) < 1e-5
    # All three regressions are closer to the function than the noisy points.
    assert len(said) == 4
    assert all(float(line.split(": ")[1].split()[0]) < example.NOISE for line in said[1:])
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_kernel_ridge_regression_equals_its_formula(example):
    generator = np.random.default_rng(2)
    x, at = generator.uniform(0, 3, 20), np.linspace(0, 3, 9)
    y = example.function(x)

    def similar(a, b):
        """exp(q . k / sqrt 2) for points on the circle, divided by its largest value."""
        return np.exp(example.RADIUS**2 * (np.cos(a[:, None] - b[None]) - 1) / np.sqrt(2))

    weights = np.linalg.solve(similar(x, x) + 0.05 * np.eye(20), y)
    found = example.ridge(example.on_circle(at), example.on_circle(x), y)
    np.testing.assert_allclose(found, similar(at, x) @ weights, atol=1e-8)
    means = similar(at, x) @ y / similar(at, x).sum(axis=1)
    np.testing.assert_allclose(
        example.nadaraya_watson(example.on_circle(at), example.on_circle(x), y), means, atol=1e-10
    )
