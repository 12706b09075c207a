"""Rows of the contract; see `conformance.table`."""

from functools import partial

from conformance.harness import Row

from keras_seq import layers


def sample_and_divergence(layer, arrays):
    mean, log_variance = arrays["mean"], arrays["log_variance"]
    return layer(**arrays), layer.kl_divergence(mean, log_variance)


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
