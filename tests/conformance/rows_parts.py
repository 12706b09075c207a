"""Rows of the contract; see `conformance.table`."""

from functools import partial

from conformance.harness import Row
from keras import ops

from keras_seq import layers


def sample_and_divergence(layer, arrays):
    mean, log_variance = arrays["mean"], arrays["log_variance"]
    return layer(**arrays), layer.kl_divergence(mean, log_variance)


def copy_or_generate(layer, arrays):
    """Turns the numbers of the row into attention weights that are 0 on padding."""
    real = ops.not_equal(arrays["source"], 0)[:, None]
    weights = ops.softmax(ops.where(real, arrays["attention"], -1e9), axis=-1)
    return layer(**{**arrays, "attention": weights})


ROWS: list[Row] = [
    Row(
        "CharacterConvolution",
        make=partial(
            layers.CharacterConvolution,
            vocabulary_size=20,
            embedding_units=4,
            widths=(1, 3),
            filters=(3, 5),
        ),
        inputs={"inputs": "BTE ids"},
        outputs=["BTU"],
    ),
    Row(
        "ConditionalRandomField",
        make=layers.ConditionalRandomField,
        inputs={"inputs": "BTV", "tags": "BT ids"},
        masks={"inputs_mask": "T"},
        outputs=["BT", "B"],
        float32_outputs=[1],
    ),
    *(
        Row(
            f"ConvolutionalEncoder-{name}",
            make=partial(layers.ConvolutionalEncoder, units=8, num_layers=2, **variant),
            inputs={"inputs": "BSD"},
            masks={"mask": "S"},
            outputs=["BSU"],
        )
        for name, variant in (("centred", {}), ("causal", {"kernel_size": 2, "causal": True}))
    ),
    Row(
        "PointerGenerator",
        make=partial(layers.PointerGenerator, vocabulary_size=20),
        inputs={"inputs": "BTD", "logits": "BTV", "attention": "BTS", "source": "BS ids"},
        outputs=["BTV"],
        call=copy_or_generate,
        float32_outputs=[0],
    ),
    *(
        Row(
            f"HardMonotonicAttention-{name}",
            make=partial(layers.HardMonotonicAttention, 20, units=4, window=window),
            inputs={"inputs": "BTD", "value": "BSE", "target": "BT ids"},
            masks={"value_mask": "S"},
            outputs=["BTV", "BTS"],
            call=lambda layer, arrays: layer(**arrays, return_weights=True),
            float32_outputs=[0, 1],
        )
        for name, window in (("any", 0), ("window", 2))
    ),
    Row(
        "HashedNgramEmbedding",
        make=partial(layers.HashedNgramEmbedding, 2, rows=20, units=8),
        inputs={"inputs": "BT ids"},
        outputs=["BTU"],
    ),
    Row(
        "WordFormEmbedding",
        make=partial(layers.WordFormEmbedding, rows=20, units=2, max_affix=1),
        inputs={"inputs": "BTD ids"},
        outputs=["BTE"],
    ),
    Row(
        "HashedTrigramEmbedding",
        make=partial(layers.HashedTrigramEmbedding, vocabulary_size=20, units=8, reduction="mean"),
        inputs={"inputs": "BTE ids"},
        outputs=["BTU"],
    ),
    Row(
        "ReparameterizedSampling-vector",
        make=layers.ReparameterizedSampling,
        inputs={"mean": "BU", "log_variance": "BU"},
        outputs=["BU", "B"],
        call=sample_and_divergence,
        float32_outputs=[1],
    ),
    Row(
        "ReparameterizedSampling-steps",
        make=layers.ReparameterizedSampling,
        inputs={"mean": "BTU", "log_variance": "BTU"},
        masks={"mean_mask": "T"},
        outputs=["BTU"],
    ),
]
