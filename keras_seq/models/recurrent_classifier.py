"""The recurrent classifier."""

from typing import Any

import keras

from keras_seq.layers.internal.seeds import split_seed
from keras_seq.layers.masked_pooling import KINDS, MaskedPooling
from keras_seq.models.checks import check_choice, check_sizes
from keras_seq.models.inputs import token_input
from keras_seq.models.text_classifier import TextClassifier
from keras_seq.models.text_encoders import recurrent_encoder


@keras.saving.register_keras_serializable(package="keras_seq")
class RecurrentClassifier(TextClassifier):
    """Text classifier with bidirectional recurrent layers, as a functional Keras model.

        x = dropout(E[id]);  bidirectional layers, residual from layer 2
        v = [last forward state; last backward state] of the topmost layer,
            or the mean or maximum of its outputs
        logits = W dropout(v) + b

    For texts where word order matters and the corpus is small. The last state of a direction is
    its state at the last real token it reads. Id 0 is padding, which changes nothing.

    Shapes: B batch, S steps, U units, C classes.

    Args:
        vocabulary_size: Positive integer.
        num_classes: Positive integer C.
        cell: "gru" or "lstm".
        num_layers, embedding_units: Positive integers.
        units: Positive integer U, in each direction.
        pooling: "last", "mean" or "max".
        dropout: Float in [0, 1), on embeddings, between layers and on the pooled vector.
        seed: Optional integer, makes the dropout reproducible.
        dtype: Dtype policy of all layers, or None for the global policy.

    Call arguments:
        inputs: Dict of int32 ids: `source` `(B, S)`.

    Returns:
        Float32 logits `(B, C)`. A row of padding is classified by a vector of zeros.

    Raises:
        ValueError: If `cell` or `pooling` is unknown, or a size or rate is out of range.

    Example:

    >>> model = RecurrentClassifier(20, 3, embedding_units=4, units=8)
    >>> tuple(model({"source": keras.ops.array([[5, 6, 0]])}).shape)
    (1, 3)

    Reference:
        Schuster and Paliwal, "Bidirectional Recurrent Neural Networks", 1997; Conneau et al.,
        "Supervised Learning of Universal Sentence Representations from Natural Language Inference
        Data", 2017, section 3.2, https://arxiv.org/abs/1705.02364
    """

    def __init__(
        self,
        vocabulary_size: int,
        num_classes: int,
        cell: str = "gru",
        num_layers: int = 1,
        embedding_units: int = 256,
        units: int = 256,
        pooling: str = "last",
        dropout: float = 0.3,
        seed: int | None = None,
        dtype: Any = None,
        name: str = "recurrent_classifier",
        **kwargs: Any,
    ) -> None:
        check_sizes(num_classes=num_classes)
        check_choice("pooling", pooling, KINDS)
        encoder_seed, output_seed = split_seed(seed, 2)
        source = token_input("source")
        x, vector, mask = recurrent_encoder(source, self._arguments, encoder_seed)
        if pooling != "last":
            vector = MaskedPooling(pooling, dtype=dtype, name="pooling")(x, mask=mask)
        self._connect(source, vector, output_seed, name=name, **kwargs)
