"""The text encoder with a backbone of KerasHub."""

from types import SimpleNamespace
from typing import Any

import keras
from keras import ops

from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.models.checks import check_choice, check_sizes
from keras_seq.models.inputs import token_input
from keras_seq.models.text_encoder import TextEncoder

_BACKBONES = {"bert": "BertBackbone", "distil_bert": "DistilBertBackbone"}
_CLS_ID = 2


@keras.saving.register_keras_serializable(package="keras_seq")
class BackboneTextEncoder(TextEncoder):
    """Text encoder with a backbone of KerasHub, as a functional Keras model.

        [first; steps] = backbone([CLS] source)
        pooling="first":  tanh(P first + p)

    For small labeled corpora, where the encoder is pretrained. The constructor makes new weights;
    `keras-seq train --preset hub:NAME` starts from those of a pretrained encoder. Id 0 is padding,
    which changes nothing, 1 unknown, 2 `[CLS]`, which the model inserts in front, and 3 `[SEP]`,
    which ends each text.

    Shapes: B batch, S steps, D units.

    Args:
        vocabulary_size, num_layers, feedforward_units, num_heads: Positive integers.
        backbone: "bert" or "distil_bert".
        units: Positive integer D, a multiple of `num_heads`.
        positions: Integer above 1. The model reads this many tokens of a text, less one.
        dropout: Float in [0, 1), inside the backbone.
        **kwargs: `name`, and `dtype`, the policy of all layers.

    Call arguments:
        inputs: Dict of int32 ids: `source` `(B, S)`.

    Returns:
        Dict of `steps` `(B, S, D)`, 0 at ignored tokens; `first` `(B, D)`, the output at the token
        `[CLS]`; and bool `mask` `(B, S)`, True where a token was read.

    Raises:
        ImportError: If KerasHub is not installed.
        ValueError: If `backbone` is unknown, or a size or rate is out of range.

    Example:

    >>> encoder = BackboneTextEncoder(
    ...     20, num_layers=1, units=8, feedforward_units=16, num_heads=2, positions=16
    ... )
    >>> tuple(encoder({"source": keras.ops.array([[5, 6, 3, 0]])})["steps"].shape)
    (1, 4, 8)

    Reference:
        Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language
        Understanding", 2019, https://arxiv.org/abs/1810.04805
    """

    poolings = ("first", "mean", "max")

    def __init__(
        self,
        vocabulary_size: int,
        backbone: str = "bert",
        num_layers: int = 12,
        units: int = 768,
        feedforward_units: int = 3072,
        num_heads: int = 12,
        positions: int = 512,
        dropout: float = 0.1,
        **kwargs: Any,
    ) -> None:
        layer = _make_backbone(self._arguments)
        source = token_input("source")
        outputs = _encode(source, layer, positions)
        super().__init__(inputs={"source": source}, outputs=outputs, **kwargs)
        # The namespace keeps Keras from tracking the layers twice.
        self._parts = SimpleNamespace(backbone=layer)

    @property
    def backbone(self) -> Any:
        """Backbone of KerasHub with the layers of this model, and a pooler that is not used."""
        return self._parts.backbone

    def pool(self, pooling: str) -> Any:
        if pooling != "first":
            return super().pool(pooling)
        first = self.output["first"]
        units, dtype = self._arguments.units, self.dtype_policy
        return ExactDense(units, activation="tanh", dtype=dtype, name="pooled_dense")(first)


def _make_backbone(arguments: SimpleNamespace) -> Any:
    args = arguments
    check_choice("backbone", args.backbone, tuple(_BACKBONES))
    sizes = ("vocabulary_size", "num_layers", "units", "feedforward_units", "num_heads")
    check_sizes(**{name: getattr(args, name) for name in (*sizes, "positions")})
    if args.positions < 2 or not 0 <= args.dropout < 1:
        raise ValueError(
            "`positions` must be above 1 and `dropout` in [0, 1), received "
            f"{args.positions!r} and {args.dropout!r}."
        )
    if args.units % args.num_heads:
        raise ValueError(
            f"`num_heads` must divide `units`, received {args.num_heads} and {args.units}."
        )
    try:
        import keras_hub
    except ImportError:
        raise ImportError(
            "A pretrained encoder needs KerasHub: python -m pip install 'keras-seq[hub]'"
        ) from None
    # BERT was pretrained with two segments. This model uses only the first segment.
    segments = {"num_segments": 2} if args.backbone == "bert" else {}
    return getattr(keras_hub.models, _BACKBONES[args.backbone])(
        vocabulary_size=args.vocabulary_size,
        num_layers=args.num_layers,
        num_heads=args.num_heads,
        hidden_dim=args.units,
        intermediate_dim=args.feedforward_units,
        dropout=args.dropout,
        max_sequence_length=args.positions,
        **segments,
        # Quantized layers of this package can have the paths of layers of the backbone.
        dtype=getattr(args.dtype, "default_policy", args.dtype),
        name="backbone",
    )


def _encode(source: Any, backbone: Any, positions: int) -> dict[str, Any]:
    # Padding to a round length can make batches and exports longer than the position table.
    length = positions - 1
    ids = ops.pad(source[:, :length], [[0, 0], [1, 0]], constant_values=_CLS_ID)
    inputs = {"token_ids": ids, "padding_mask": ops.cast(ops.not_equal(ids, 0), "int32")}
    if "segment_ids" in backbone.input:
        inputs["segment_ids"] = ops.zeros_like(ids)
    output = backbone.output
    if isinstance(output, dict):
        output = output["sequence_output"]
    # Skips the layers after the sequence output, because their weights would not be trained.
    x = keras.Model(backbone.input, output, name="encoder_backbone")(inputs)
    ignored = source[:, length:]
    zeros = ops.expand_dims(ops.zeros_like(ignored, dtype=x.dtype), -1) * x[:, :1]
    steps = ops.concatenate([x[:, 1:], zeros], axis=1)
    mask = ops.not_equal(source[:, :length], 0)
    mask = ops.concatenate([mask, ops.zeros_like(ignored, dtype="bool")], axis=1)
    return {"steps": steps, "first": x[:, 0], "mask": mask}
