"""The recurrent classifier."""

import keras

from keras_seq.layers.internal.seeds import split_seed
from keras_seq.layers.masked_pooling import KINDS, MaskedPooling
from keras_seq.models.checks import check_choice, check_sizes
from keras_seq.models.text_encoders import recurrent_encoder
from keras_seq.models.text_model import TextModel, to_logits

# Shape letters: B batch, S steps, U units, C classes.


@keras.saving.register_keras_serializable(package="keras_seq")
class RecurrentClassifier(TextModel):
    """Classifier of a text that is read from both ends, as a functional Keras model.

        x = dropout(E[id]);  bidirectional layers, residual from layer 2
        v = [last forward state; last backward state] of the topmost layer,
            or the mean or maximum of its outputs
        logits = W dropout(v) + b

    The last state of a direction is that at the last token which is no
    padding, on its way. Id 0 is padding.

    Shapes: B batch, S steps, U units, C classes.

    Args:
        vocabulary_size: Positive integer.
        num_classes: Positive integer C.
        cell: "gru" or "lstm".
        num_layers: Positive integer.
        embedding_units: Positive integer.
        units: Positive integer U, in each direction.
        pooling: "last", "mean" or "max".
        dropout: Float in [0, 1), on embeddings, between layers and on what is
            classified.
        seed: Optional integer, makes the dropout reproducible.

    Call arguments:
        inputs: Dict of int32 ids: `source` `(B, S)`.

    Returns:
        Float32 logits `(B, C)`; those of a row of padding are of zeros.

    Masks: taken from the ids; padding changes nothing.

    Raises:
        ValueError: If `cell` or `pooling` is none of those named, or a size or
            rate is out of range.

    Example:

    >>> model = RecurrentClassifier(20, 3, embedding_units=4, units=8)
    >>> tuple(model({"source": keras.ops.array([[5, 6, 0]])}).shape)
    (1, 3)

    Reference:
        Schuster and Paliwal, "Bidirectional Recurrent Neural Networks", 1997;
        Conneau et al., "Supervised Learning of Universal Sentence
        Representations from Natural Language Inference Data", 2017, section
        3.2, https://arxiv.org/abs/1705.02364
    """

    def __init__(
        self,
        vocabulary_size,
        num_classes,
        cell="gru",
        num_layers=1,
        embedding_units=256,
        units=256,
        pooling="last",
        dropout=0.3,
        seed=None,
        name="recurrent_classifier",
        **kwargs,
    ):
        check_sizes(num_classes=num_classes)
        check_choice("pooling", pooling, KINDS)
        dtype = kwargs.pop("dtype", None)
        config = {
            "vocabulary_size": vocabulary_size,
            "num_classes": num_classes,
            "cell": cell,
            "num_layers": num_layers,
            "embedding_units": embedding_units,
            "units": units,
            "pooling": pooling,
            "dropout": dropout,
            "seed": seed,
        }
        seeds = split_seed(seed, 2)
        source = keras.Input((None,), dtype="int32", name="source")
        x, pooled, mask = recurrent_encoder(source, config, seeds[0], dtype)
        if pooling != "last":
            pooled = MaskedPooling(pooling, dtype=dtype, name="pooling")(x, mask=mask)
        super().__init__(
            inputs={"source": source},
            outputs=to_logits(pooled, num_classes, dropout, seeds[1], dtype),
            name=name,
            **kwargs,
        )
        self._remember(config, dtype)
