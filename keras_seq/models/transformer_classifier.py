"""The Transformer classifier."""

from typing import Any

import keras

from keras_seq.layers.internal.seeds import split_seed
from keras_seq.layers.masked_pooling import KINDS, MaskedPooling
from keras_seq.models.checks import check_choice, check_sizes
from keras_seq.models.inputs import token_input
from keras_seq.models.text_classifier import TextClassifier
from keras_seq.models.text_encoders import transformer_encoder


@keras.saving.register_keras_serializable(package="keras_seq")
class TransformerClassifier(TextClassifier):
    """Text classifier with the encoder of a Transformer, as a functional Keras model.

        x = dropout(sqrt(D) E[id] + position);  blocks
        v = mean, maximum or last of x over the real tokens
        logits = W dropout(v) + b

    For large labeled corpora; with few labels prefer `BackboneClassifier` or `BagClassifier`. Id 0
    is padding, which changes nothing.

    Shapes: B batch, S steps, D units, C classes.

    Args:
        vocabulary_size: Positive integer.
        num_classes: Positive integer C.
        num_layers: Positive integer.
        units: Positive integer D, a multiple of `num_heads`.
        feedforward_units, num_heads: Positive integers.
        dropout: Float in [0, 1), on embeddings, on the output of each part of a block and on the
            pooled vector.
        attention_dropout: Float in [0, 1), on attention weights.
        activation_dropout: Float in [0, 1), on the hidden units of the feed-forward layers.
        activation: Name of a Keras activation.
        norm: `"pre"` or `"post"`.
        pooling: "mean", "max" or "last".
        seed: Optional integer, makes the dropout reproducible.
        dtype: Dtype policy of all layers, or None for the global policy.

    Call arguments:
        inputs: Dict of int32 ids: `source` `(B, S)`.

    Returns:
        Float32 logits `(B, C)`. A row of padding is classified by a vector of zeros.

    Raises:
        ValueError: If `pooling` is unknown, or a size or rate is out of range.

    Example:

    >>> model = TransformerClassifier(20, 3, units=8, feedforward_units=16, num_heads=2)
    >>> tuple(model({"source": keras.ops.array([[5, 6, 0]])}).shape)
    (1, 3)

    Reference:
        Vaswani et al., "Attention Is All You Need", 2017, section 3.1,
        https://arxiv.org/abs/1706.03762; Devlin et al., "BERT: Pre-training of Deep Bidirectional
        Transformers for Language Understanding", 2019, https://arxiv.org/abs/1810.04805, who pool
        with a special token instead
    """

    def __init__(
        self,
        vocabulary_size: int,
        num_classes: int,
        num_layers: int = 2,
        units: int = 256,
        feedforward_units: int = 1024,
        num_heads: int = 4,
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        activation_dropout: float = 0.1,
        activation: str = "relu",
        norm: str = "pre",
        pooling: str = "mean",
        seed: int | None = None,
        dtype: Any = None,
        name: str = "transformer_classifier",
        **kwargs: Any,
    ) -> None:
        check_sizes(num_classes=num_classes)
        check_choice("pooling", pooling, KINDS)
        encoder_seed, output_seed = split_seed(seed, 2)
        source = token_input("source")
        x, mask = transformer_encoder(source, self._arguments, encoder_seed)
        vector = MaskedPooling(pooling, dtype=dtype, name="pooling")(x, mask=mask)
        self._connect(source, vector, output_seed, name=name, **kwargs)
