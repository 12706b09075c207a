"""Encoders of KerasHub in functional models, with the token ids of this package."""

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from keras_seq.models.checks import check_choice, check_sizes

# Shape letters: B batch, S steps, D units.

_BACKBONES = {"bert": "BertBackbone", "distil_bert": "DistilBertBackbone"}
_SIZES = (
    "backbone_layers",
    "backbone_units",
    "backbone_feedforward_units",
    "backbone_heads",
    "backbone_positions",
)
_CLS_ID = 2


def make_backbone(vocabulary_size: int, config: Mapping[str, Any], dtype: Any = None) -> Any:
    """Makes a backbone of KerasHub with new weights.

    `config` has `backbone`, its sizes and its dropout, named like the arguments of
    `BackboneClassifier`. Raises ImportError if KerasHub is not installed, and ValueError if the
    backbone is unknown, or a size or rate is out of range.
    """
    check_choice("backbone", config["backbone"], tuple(_BACKBONES))
    check_sizes(**{name: config[name] for name in _SIZES})
    if config["backbone_positions"] < 2 or not 0 <= config["backbone_dropout"] < 1:
        raise ValueError(
            "`backbone_positions` must be above 1 and `backbone_dropout` in [0, 1), received "
            f"{config['backbone_positions']!r} and {config['backbone_dropout']!r}."
        )
    if config["backbone_units"] % config["backbone_heads"]:
        raise ValueError(
            f"`backbone_heads` must divide `backbone_units`, received {config['backbone_heads']} "
            f"and {config['backbone_units']}."
        )
    try:
        import keras_hub
    except ImportError:
        raise ImportError(
            "A pretrained encoder needs KerasHub: pip install 'keras-seq[hub]'"
        ) from None
    # BERT has two segments, although a model of this package passes one text.
    segments = {"num_segments": 2} if config["backbone"] == "bert" else {}
    return getattr(keras_hub.models, _BACKBONES[config["backbone"]])(
        vocabulary_size=vocabulary_size,
        num_layers=config["backbone_layers"],
        num_heads=config["backbone_heads"],
        hidden_dim=config["backbone_units"],
        intermediate_dim=config["backbone_feedforward_units"],
        dropout=config["backbone_dropout"],
        max_sequence_length=config["backbone_positions"],
        **segments,
        dtype=dtype,
        name="backbone",
    )


def encode_with_backbone(source: Any, backbone: Any, positions: int) -> tuple[Any, Any, Any]:
    """Runs a backbone from `make_backbone` on symbolic ids `(B, S)`.

    An end token follows each text. The ids are 0 `[PAD]`, 1 `[UNK]`, 2 `[CLS]`, 3 `[SEP]`. Tokens
    after `positions` are ignored. Returns `(B, D)`, the output at the token `[CLS]`, which is
    inserted in front; `(B, S, D)`, the outputs at the other tokens, 0 at ignored ones; and a mask
    `(B, S)`, True where a token was read.
    """
    # Batches and exports are padded to round lengths, which may exceed the positions.
    length = positions - 1
    ids = ops.pad(source[:, :length], [[0, 0], [1, 0]], constant_values=_CLS_ID)
    inputs = {"token_ids": ids, "padding_mask": ops.cast(ops.not_equal(ids, 0), "int32")}
    if "segment_ids" in backbone.input:
        inputs["segment_ids"] = ops.zeros_like(ids)
    output = backbone.output
    if isinstance(output, dict):
        output = output["sequence_output"]
    # The layers after the sequence output are left out: their weights would not be trained.
    x = keras.Model(backbone.input, output, name="encoder_backbone")(inputs)
    ignored = source[:, length:]
    zeros = ops.expand_dims(ops.zeros_like(ignored, dtype=x.dtype), -1) * x[:, :1]
    steps = ops.concatenate([x[:, 1:], zeros], axis=1)
    mask = ops.not_equal(source[:, :length], 0)
    mask = ops.concatenate([mask, ops.zeros_like(ignored, dtype="bool")], axis=1)
    return x[:, 0], steps, mask
