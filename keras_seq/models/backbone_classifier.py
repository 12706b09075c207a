"""The classifier of a pretrained encoder."""

import keras

from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.layers.masked_pooling import MaskedPooling
from keras_seq.models.backbone_encoder import backbone_encoder, make_backbone
from keras_seq.models.checks import check_choice, check_sizes
from keras_seq.models.text_model import TextModel, to_logits

# Shape letters: B batch, S steps, D units, C classes.


@keras.saving.register_keras_serializable(package="keras_seq")
class BackboneClassifier(TextModel):
    """Classifier of a text by an encoder of KerasHub, as a functional Keras model.

        x = encoder([CLS] source);  v = tanh(P x_1 + p), or the mean or maximum of x_2 ...
        logits = W dropout(v) + b

    Its weights are new; `keras-seq train --preset hub:NAME` begins with those of a
    pretrained encoder. Id 0 is padding, 1 unknown, 2 `[CLS]`, which the model puts in
    front, and 3 `[SEP]`, with which each text ends.

    Shapes: B batch, S steps, D units, C classes.

    Args:
        vocabulary_size: Positive integer.
        num_classes: Positive integer C.
        backbone: "bert" or "distil_bert".
        backbone_layers: Positive integer.
        backbone_units: Positive integer D, a multiple of `backbone_heads`.
        backbone_feedforward_units: Positive integer.
        backbone_heads: Positive integer.
        backbone_positions: Integer above 1; so many tokens less one are read of a text.
        backbone_dropout: Float in [0, 1), inside the encoder.
        pooling: "first", "mean" or "max".
        dropout: Float in [0, 1), on what is classified.
        seed: Optional integer, makes that dropout reproducible.

    Call arguments:
        inputs: Dict of int32 ids: `source` `(B, S)`.

    Returns:
        Float32 logits `(B, C)`.

    Masks: taken from the ids; padding changes nothing.

    Raises:
        ImportError: If KerasHub is not installed.
        ValueError: If `backbone` or `pooling` is none of those named, or a size or
            rate is out of range.

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
        Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for
        Language Understanding", 2019, https://arxiv.org/abs/1810.04805
    """

    def __init__(
        self,
        vocabulary_size,
        num_classes,
        backbone="bert",
        backbone_layers=12,
        backbone_units=768,
        backbone_feedforward_units=3072,
        backbone_heads=12,
        backbone_positions=512,
        backbone_dropout=0.1,
        pooling="first",
        dropout=0.1,
        seed=None,
        name="backbone_classifier",
        **kwargs,
    ):
        check_sizes(vocabulary_size=vocabulary_size, num_classes=num_classes)
        check_choice("pooling", pooling, ("first", "mean", "max"))
        dtype = kwargs.pop("dtype", None)
        config = {
            "vocabulary_size": vocabulary_size,
            "num_classes": num_classes,
            "backbone": backbone,
            "backbone_layers": backbone_layers,
            "backbone_units": backbone_units,
            "backbone_feedforward_units": backbone_feedforward_units,
            "backbone_heads": backbone_heads,
            "backbone_positions": backbone_positions,
            "backbone_dropout": backbone_dropout,
            "pooling": pooling,
            "dropout": dropout,
            "seed": seed,
        }
        source = keras.Input((None,), dtype="int32", name="source")
        encoder = make_backbone(vocabulary_size, config, dtype)
        first, steps, mask = backbone_encoder(source, encoder, backbone_positions)
        if pooling == "first":
            pooled = ExactDense(
                backbone_units, activation="tanh", dtype=dtype, name="pooled_dense"
            )(first)
        else:
            pooled = MaskedPooling(pooling, dtype=dtype, name="pooling")(steps, mask=mask)
        super().__init__(
            inputs={"source": source},
            outputs=to_logits(pooled, num_classes, dropout, split_seed(seed, 1)[0], dtype),
            name=name,
            **kwargs,
        )
        self._remember(config, dtype)
