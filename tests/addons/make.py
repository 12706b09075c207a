"""Records the results of TensorFlow Addons for each "before" block of docs/migration.md.

Needs a separate old environment, because TensorFlow Addons ended with TensorFlow 2.15 and
Keras 2:

    python3.11 -m venv /tmp/addons
    /tmp/addons/bin/pip install "tensorflow==2.12.*" "tensorflow-addons==0.21.*" \
        "numpy<1.24" "typeguard<3"
    /tmp/addons/bin/python tests/addons/make.py

Writes tests/addons/recorded.npz: the text of each block as `NAME/source`, each numeric variable of
the block as `NAME/VARIABLE/PLACE`, and as `names/` the public names of the old modules and their
arguments. Weights are random, so that none is 0 or 1 by default. tests/test_migration_page.py
compares the results of the "after" blocks with this file.
"""

import inspect
import re
import zlib
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_addons as tfa

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "migration.md"


def blocks(kind: str) -> dict:
    """Maps the name of each block of a kind to its text, in the order of the page."""
    text = PAGE.read_text(encoding="utf-8")
    return dict(re.findall(rf"<!-- {kind}: (\w+) -->\n+```python\n(.*?)```", text, re.DOTALL))


def draw_weights(name: str) -> None:
    """Makes later weights random, from a generator that the name of the block seeds."""
    generator = np.random.default_rng(zlib.crc32(name.encode()))

    def add_weight(self, *arguments, **options):
        weight = original_add_weight(self, *arguments, **options)
        if weight.dtype.is_floating:
            weight.assign(generator.normal(size=weight.shape) * 0.5)
        return weight

    tf.keras.layers.Layer.add_weight = add_weight


def numbers_of(value: object) -> list:
    """The arrays in a structure, or an empty list if the structure holds anything else."""
    try:
        flat = [np.asarray(part) for part in tf.nest.flatten(value, expand_composites=False)]
    except (TypeError, ValueError):
        return []
    return flat if all(part.dtype.kind in "fiub" for part in flat) else []


def public(module) -> list:
    """Public names of the classes and functions of a module."""
    return [name for name in dir(module) if name[0] != "_" and callable(getattr(module, name))]


def main() -> None:
    recorded = {}
    (inputs,) = blocks("inputs").values()
    for name, text in blocks("before").items():
        draw_weights(name)
        namespace = {"np": np, "tf": tf, "tfa": tfa}
        exec(inputs, namespace)
        before = dict(namespace)
        exec(text, namespace)
        recorded[f"{name}/source"] = np.array(inputs + text)
        for variable, value in namespace.items():
            if variable == "_" or (variable in before and value is before[variable]):
                continue
            for place, array in enumerate(numbers_of(value)):
                recorded[f"{name}/{variable}/{place}"] = array
    for module in (tfa.rnn, tfa.seq2seq, tfa.text):
        recorded[f"names/{module.__name__.split('.')[-1]}"] = np.array(public(module))
    for part in (*map(tfa.rnn.__dict__.get, public(tfa.rnn)), *PARTS):
        recorded[f"names/{part.__name__}"] = np.array(list(inspect.signature(part).parameters))
    np.savez_compressed(HERE / "recorded.npz", **recorded)


PARTS = (
    tfa.layers.CRF,
    tfa.layers.MultiHeadAttention,
    tfa.seq2seq.AttentionWrapper,
    tfa.seq2seq.BahdanauAttention,
    tfa.seq2seq.BahdanauMonotonicAttention,
    tfa.seq2seq.BasicDecoder,
    tfa.seq2seq.BeamSearchDecoder,
    tfa.seq2seq.LuongAttention,
    tfa.seq2seq.LuongMonotonicAttention,
    tfa.seq2seq.SampleEmbeddingSampler,
    tfa.seq2seq.ScheduledEmbeddingTrainingSampler,
    tfa.seq2seq.ScheduledOutputTrainingSampler,
    tfa.seq2seq.TrainingSampler,
    tfa.seq2seq.monotonic_attention,
    tfa.seq2seq.sequence_loss,
)
original_add_weight = tf.keras.layers.Layer.add_weight

if __name__ == "__main__":
    main()
