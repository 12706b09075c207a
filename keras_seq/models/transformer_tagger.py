"""The Transformer tagger, an encoder alone."""

from types import SimpleNamespace

import keras

from keras_seq.layers.internal.seeds import split_seed
from keras_seq.models.checks import check_sizes
from keras_seq.models.tagging import tagger_inputs, tagger_outputs
from keras_seq.models.text_encoders import transformer_encoder
from keras_seq.models.text_model import TextModel

# Shape letters: B batch, S steps, D units, N tags.


@keras.saving.register_keras_serializable(package="keras_seq")
class TransformerTagger(TextModel):
    """Tagger of words by the encoder of a Transformer, as a functional Keras model.

        x = dropout(sqrt(D) E[id] + position);  blocks
        logits = W dropout(x) + b
        tags = argmax of the logits, each word by itself,
               or the likeliest sequence under a `ConditionalRandomField`

    A word may be cut into several tokens: its first one is tagged, and the
    field leaves out the others, as if the first ones followed each other. Id 0
    is padding.

    Shapes: B batch, S steps, D units, N tags.

    Args:
        vocabulary_size: Positive integer.
        num_tags: Positive integer N.
        crf: Whether a tag depends on the tag before it, too.
        num_layers: Positive integer.
        units: Positive integer D, a multiple of `num_heads`.
        feedforward_units: Positive integer.
        num_heads: Positive integer.
        dropout: Float in [0, 1), on embeddings, on the output of each part of a
            block and on what is tagged.
        attention_dropout: Float in [0, 1), on attention weights.
        activation_dropout: Float in [0, 1), on the feed-forward's hidden units.
        activation: Name of a Keras activation.
        norm: `"pre"` or `"post"`.
        seed: Optional integer, makes the dropout reproducible.

    Call arguments:
        inputs: Dict of int32 ids `source` `(B, S)`, and bool `begins` `(B, S)`,
            True at the first token of each word.

    Returns:
        Dict of float32 `logits` `(B, S, N)`, the potentials; and int32 `tags`
        `(B, S)`, 0 where no word begins.

    Besides itself the model offers `field`, the layer whose
    `log_likelihood(logits, tags, begins)` it is trained by; None without one.

    Masks: taken from the ids; padding changes nothing.

    Raises:
        ValueError: If a size or rate is out of range.

    Example:

    >>> model = TransformerTagger(20, 3, units=8, feedforward_units=16, num_heads=2)
    >>> outputs = model({
    ...     "source": keras.ops.array([[5, 6, 7, 0]]),
    ...     "begins": keras.ops.array([[True, False, True, False]]),
    ... })
    >>> tuple(outputs["logits"].shape), tuple(outputs["tags"].shape)
    ((1, 4, 3), (1, 4))

    Reference:
        Vaswani et al., "Attention Is All You Need", 2017, section 3.1,
        https://arxiv.org/abs/1706.03762; Devlin et al., "BERT: Pre-training of
        Deep Bidirectional Transformers for Language Understanding", 2019,
        section 5.3, https://arxiv.org/abs/1810.04805, which tags first tokens
    """

    def __init__(
        self,
        vocabulary_size,
        num_tags,
        crf=False,
        num_layers=2,
        units=256,
        feedforward_units=1024,
        num_heads=4,
        dropout=0.1,
        attention_dropout=0.1,
        activation_dropout=0.1,
        activation="relu",
        norm="pre",
        seed=None,
        name="transformer_tagger",
        **kwargs,
    ):
        check_sizes(num_tags=num_tags)
        dtype = kwargs.pop("dtype", None)
        config = {
            "vocabulary_size": vocabulary_size,
            "num_tags": num_tags,
            "crf": crf,
            "num_layers": num_layers,
            "units": units,
            "feedforward_units": feedforward_units,
            "num_heads": num_heads,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "activation_dropout": activation_dropout,
            "activation": activation,
            "norm": norm,
            "seed": seed,
        }
        seeds = split_seed(seed, 2)
        inputs = tagger_inputs()
        x, _ = transformer_encoder(inputs["source"], config, seeds[0], dtype)
        outputs, field = tagger_outputs(x, inputs, config, seeds[1], dtype)
        super().__init__(inputs=inputs, outputs=outputs, name=name, **kwargs)
        self._remember(config, dtype)
        # In a namespace, which Keras does not track: the layer is one of the graph.
        self._parts = SimpleNamespace(field=field)

    @property
    def field(self):
        """The `ConditionalRandomField`, or None."""
        return self._parts.field
