"""A run trained on any backend gives the same translations on all three."""

import importlib.util
import itertools
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from faults.training_process import QUICK_TO_COMPILE
from training.toy import write_pairs

pytestmark = [pytest.mark.process, pytest.mark.weekly]

BACKENDS = ("tensorflow", "jax", "torch")
# Keras imports these where they are installed, which takes longer than the trainings.
HIDE = """
import sys
unused = {"IPython", "PIL", "h5py", "matplotlib", "pandas", "sklearn", "tensorflow"} - {sys.argv[1]}
sys.modules.update(dict.fromkeys(unused))
"""
# Trains a Transformer on each backend, and a recurrent model on one: torch builds it slowly.
TRAIN = """
import sys
import keras_seq
sizes = {
    "transformer": {"num_encoder_layers": 1, "num_decoder_layers": 1, "units": 16,
        "feedforward_units": 32, "num_heads": 2},
    "rnn": {"embedding_units": 16, "encoder_units": 16, "decoder_units": 32,
        "attention_units": 16},
}
kinds = [("transformer", "transformer-tiny", 60), ("rnn", "rnn-small", 20)]
for family, preset, steps in kinds if sys.argv[1] == "tensorflow" else kinds[:1]:
    settings = keras_seq.load_settings(preset=preset, overrides={
        "data.pairs": "train.tsv", "data.valid_pairs": "valid.tsv",
        "tokenizer.kind": "unigram", "training.batch_tokens": 600,
        "training.schedule": "constant", "training.learning_rate": 0.01,
        "training.max_steps": steps, "training.sample_count": 0, "search.max_length": 8,
        **{f"model.{name}": value for name, value in sizes[family].items()}})
    keras_seq.train(settings, f"{family}-{sys.argv[1]}", notice=[].append)
"""
# Translates the same lines with each run.
TRANSLATE = """
import json
import sys
import keras_seq
lines = open("lines.txt").read().splitlines()
found = {}
for run in sys.argv[2:]:
    best = [row[0] for row in keras_seq.Translator.load(run).translate(lines)]
    found[run] = [[h.text for h in best], [float(h.score) for h in best]]
json.dump(found, open(f"{sys.argv[1]}.json", "w"))
"""


def on_each_backend(folder, code, *arguments):
    """Runs Python code in one process for each backend."""
    if not all(map(importlib.util.find_spec, BACKENDS)):
        pytest.skip("a backend is not installed")
    started = []
    for backend in BACKENDS:
        environment = {
            "KERAS_BACKEND": backend,
            "XLA_FLAGS": QUICK_TO_COMPILE,
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", HIDE + code, backend, *arguments],
                cwd=folder,
                env=os.environ | environment,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    try:
        for process in started:
            _, errors = process.communicate(timeout=300)
            assert process.returncode == 0, errors
    finally:
        for process in started:
            process.kill()


def test_translations_of_each_run_are_the_same_on_all_backends(tmp_path):
    write_pairs(tmp_path / "train.tsv", 200, seed=1)
    write_pairs(tmp_path / "valid.tsv", 12, seed=2)
    lines = [source for source, _ in write_pairs(tmp_path / "other.tsv", 200, seed=3)]
    (tmp_path / "lines.txt").write_text("".join(f"{line}\n" for line in lines))
    on_each_backend(tmp_path, TRAIN)
    runs = [*(f"transformer-{backend}" for backend in BACKENDS), "rnn-tensorflow"]
    on_each_backend(tmp_path, TRANSLATE, *runs)
    found = [json.loads((tmp_path / f"{backend}.json").read_text()) for backend in BACKENDS]
    for run in runs:
        assert len(set(found[0][run][0])) > 20, run
        for one, other in itertools.pairwise(found):
            assert one[run][0] == other[run][0], run
            np.testing.assert_allclose(one[run][1], other[run][1], atol=1e-4)
