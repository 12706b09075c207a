"""The Transformer classifier, an encoder alone."""

import keras

from keras_seq.layers.internal.seeds import split_seed
from keras_seq.layers.masked_pooling import KINDS, MaskedPooling
from keras_seq.models.checks import check_choice, check_sizes
from keras_seq.models.text_encoders import transformer_encoder
from keras_seq.models.text_model import TextModel, to_logits

# Shape letters: B batch, S steps, D units, C classes.


@keras.saving.register_keras_serializable(package="keras_seq")
class TransformerClassifier(TextModel):
    """Classifier of a text by the encoder of a Transformer, as a functional Keras model.

        x = dropout(sqrt(D) E[id] + position);  blocks
        v = the mean, the maximum or the last of x over the tokens that are no padding
        logits = W dropout(v) + b

    Id 0 is padding.

    Shapes: B batch, S steps, D units, C classes.

    Args:
        vocabulary_size: Positive integer.
        num_classes: Positive integer C.
        num_layers: Positive integer.
        units: Positive integer D, a multiple of `num_heads`.
        feedforward_units: Positive integer.
        num_heads: Positive integer.
        dropout: Float in [0, 1), on embeddings, on the output of each part of a
            block and on what is classified.
        attention_dropout: Float in [0, 1), on attention weights.
        activation_dropout: Float in [0, 1), on the feed-forward's hidden units.
        activation: Name of a Keras activation.
        norm: `"pre"` or `"post"`.
        pooling: "mean", "max" or "last".
        seed: Optional integer, makes the dropout reproducible.

    Call arguments:
        inputs: Dict of int32 ids: `source` `(B, S)`.

    Returns:
        Float32 logits `(B, C)`; those of a row of padding are of zeros.

    Masks: taken from the ids; padding changes nothing.

    Raises:
        ValueError: If `pooling` is none of those named, or a size or rate is
            out of range.

    Example:

    >>> model = TransformerClassifier(20, 3, units=8, feedforward_units=16, num_heads=2)
    >>> tuple(model({"source": keras.ops.array([[5, 6, 0]])}).shape)
    (1, 3)

    Reference:
        Vaswani et al., "Attention Is All You Need", 2017, section 3.1,
        https://arxiv.org/abs/1706.03762; Devlin et al., "BERT: Pre-training of
        Deep Bidirectional Transformers for Language Understanding", 2019,
        https://arxiv.org/abs/1810.04805, which pools by a token of its own
    """

    def __init__(
        self,
        vocabulary_size,
        num_classes,
        num_layers=2,
        units=256,
        feedforward_units=1024,
        num_heads=4,
        dropout=0.1,
        attention_dropout=0.1,
        activation_dropout=0.1,
        activation="relu",
        norm="pre",
        pooling="mean",
        seed=None,
        name="transformer_classifier",
        **kwargs,
    ):
        check_sizes(num_classes=num_classes)
        check_choice("pooling", pooling, KINDS)
        dtype = kwargs.pop("dtype", None)
        config = {
            "vocabulary_size": vocabulary_size,
            "num_classes": num_classes,
            "num_layers": num_layers,
            "units": units,
            "feedforward_units": feedforward_units,
            "num_heads": num_heads,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "activation_dropout": activation_dropout,
            "activation": activation,
            "norm": norm,
            "pooling": pooling,
            "seed": seed,
        }
        seeds = split_seed(seed, 2)
        source = keras.Input((None,), dtype="int32", name="source")
        x, mask = transformer_encoder(source, config, seeds[0], dtype)
        pooled = MaskedPooling(pooling, dtype=dtype, name="pooling")(x, mask=mask)
        super().__init__(
            inputs={"source": source},
            outputs=to_logits(pooled, num_classes, dropout, seeds[1], dtype),
            name=name,
            **kwargs,
        )
        self._remember(config, dtype)
