"""The recurrent tagger."""

from types import SimpleNamespace

import keras

from keras_seq.layers.internal.seeds import split_seed
from keras_seq.models.checks import check_sizes
from keras_seq.models.tagging import tagger_inputs, tagger_outputs
from keras_seq.models.text_encoders import recurrent_encoder
from keras_seq.models.text_model import TextModel

# Shape letters: B batch, S steps, U units, N tags.


@keras.saving.register_keras_serializable(package="keras_seq")
class RecurrentTagger(TextModel):
    """Tagger of words by layers that read from both ends, as a functional Keras model.

        x = dropout(E[id]);  bidirectional layers, residual from layer 2
        logits = W dropout(x) + b
        tags = argmax of the logits, each word by itself,
               or the likeliest sequence under a `ConditionalRandomField`

    A word may be cut into several tokens: its first one is tagged, and the
    field leaves out the others, as if the first ones followed each other. Id 0
    is padding.

    Shapes: B batch, S steps, U units, N tags.

    Args:
        vocabulary_size: Positive integer.
        num_tags: Positive integer N.
        crf: Whether a tag depends on the tag before it, too.
        cell: "gru" or "lstm".
        num_layers: Positive integer.
        embedding_units: Positive integer.
        units: Positive integer U, in each direction.
        dropout: Float in [0, 1), on embeddings, between layers and on the
            outputs of the last.
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
        ValueError: If `cell` is neither of these, or a size or rate is out of range.

    Example:

    >>> model = RecurrentTagger(20, 3, crf=True, embedding_units=4, units=8)
    >>> outputs = model({
    ...     "source": keras.ops.array([[5, 6, 7, 0]]),
    ...     "begins": keras.ops.array([[True, False, True, False]]),
    ... })
    >>> tuple(outputs["logits"].shape), tuple(outputs["tags"].shape)
    ((1, 4, 3), (1, 4))

    Reference:
        Huang, Xu and Yu, "Bidirectional LSTM-CRF Models for Sequence Tagging",
        2015, https://arxiv.org/abs/1508.01991; Lample et al., "Neural
        Architectures for Named Entity Recognition", 2016, section 2,
        https://arxiv.org/abs/1603.01360
    """

    def __init__(
        self,
        vocabulary_size,
        num_tags,
        crf=False,
        cell="gru",
        num_layers=1,
        embedding_units=256,
        units=256,
        dropout=0.3,
        seed=None,
        name="recurrent_tagger",
        **kwargs,
    ):
        check_sizes(num_tags=num_tags)
        dtype = kwargs.pop("dtype", None)
        config = {
            "vocabulary_size": vocabulary_size,
            "num_tags": num_tags,
            "crf": crf,
            "cell": cell,
            "num_layers": num_layers,
            "embedding_units": embedding_units,
            "units": units,
            "dropout": dropout,
            "seed": seed,
        }
        seeds = split_seed(seed, 2)
        inputs = tagger_inputs()
        x, _, _ = recurrent_encoder(inputs["source"], config, seeds[0], dtype)
        outputs, field = tagger_outputs(x, inputs, config, seeds[1], dtype)
        super().__init__(inputs=inputs, outputs=outputs, name=name, **kwargs)
        self._remember(config, dtype)
        # In a namespace, which Keras does not track: the layer is one of the graph.
        self._parts = SimpleNamespace(field=field)

    @property
    def field(self):
        """The `ConditionalRandomField`, or None."""
        return self._parts.field
