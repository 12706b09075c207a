"""The classifier with a pretrained encoder."""

from typing import Any

import keras

from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.layers.masked_pooling import MaskedPooling
from keras_seq.models.backbone_encoder import encode_with_backbone, make_backbone
from keras_seq.models.checks import check_choice, check_sizes
from keras_seq.models.inputs import token_input
from keras_seq.models.text_classifier import TextClassifier


@keras.saving.register_keras_serializable(package="keras_seq")
class BackboneClassifier(TextClassifier):
    """Text classifier with an encoder of KerasHub, as a functional Keras model.

        x = encoder([CLS] source);  v = tanh(P x_1 + p), or the mean or maximum of x_2 ...
        logits = W dropout(v) + b

    For small labeled corpora, where the encoder is pretrained. The constructor makes new weights;
    `keras-seq train --preset hub:NAME` starts from those of a pretrained encoder. Id 0 is padding,
    1 unknown, 2 `[CLS]`, which the model inserts in front, and 3 `[SEP]`, which ends each text.

    Shapes: B batch, S steps, D units, C classes.

    Args:
        vocabulary_size: Positive integer.
        num_classes: Positive integer C.
        backbone: "bert" or "distil_bert".
        backbone_layers: Positive integer.
        backbone_units: Positive integer D, a multiple of `backbone_heads`.
        backbone_feedforward_units, backbone_heads: Positive integers.
        backbone_positions: Integer above 1. The model reads this many tokens of a text, less one.
        backbone_dropout: Float in [0, 1), inside the encoder.
        pooling: "first", "mean" or "max".
        dropout: Float in [0, 1), on the pooled vector.
        seed: Optional integer, makes the dropout on the pooled vector reproducible.
        dtype: Dtype policy of all layers, or None for the global policy.

    Call arguments:
        inputs: Dict of int32 ids: `source` `(B, S)`.

    Returns:
        Float32 logits `(B, C)`.

    Masks: taken from the ids. Padding changes nothing.

    Raises:
        ImportError: If KerasHub is not installed.
        ValueError: If `backbone` or `pooling` is unknown, or a size or rate is out of range.

    Example:

    >>> model = BackboneClassifier(
    ...     20,
    ...     3,
    ...     backbone_layers=1,
    ...     backbone_units=8,
    ...     backbone_feedforward_units=16,
    ...     backbone_heads=2,
    ...     backbone_positions=16,
    ... )
    >>> tuple(model({"source": keras.ops.array([[5, 6, 3, 0]])}).shape)
    (1, 3)

    Reference:
        Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language
        Understanding", 2019, https://arxiv.org/abs/1810.04805
    """

    def __init__(
        self,
        vocabulary_size: int,
        num_classes: int,
        backbone: str = "bert",
        backbone_layers: int = 12,
        backbone_units: int = 768,
        backbone_feedforward_units: int = 3072,
        backbone_heads: int = 12,
        backbone_positions: int = 512,
        backbone_dropout: float = 0.1,
        pooling: str = "first",
        dropout: float = 0.1,
        seed: int | None = None,
        dtype: Any = None,
        name: str = "backbone_classifier",
        **kwargs: Any,
    ) -> None:
        check_sizes(vocabulary_size=vocabulary_size, num_classes=num_classes)
        check_choice("pooling", pooling, ("first", "mean", "max"))
        source = token_input("source")
        encoder = make_backbone(vocabulary_size, vars(self._arguments), dtype)
        first, steps, mask = encode_with_backbone(source, encoder, backbone_positions)
        if pooling == "first":
            dense = ExactDense(backbone_units, activation="tanh", dtype=dtype, name="pooled_dense")
            vector = dense(first)
        else:
            vector = MaskedPooling(pooling, dtype=dtype, name="pooling")(steps, mask=mask)
        self._connect(source, vector, split_seed(seed, 1)[0], name=name, **kwargs)
