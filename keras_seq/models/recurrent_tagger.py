"""The recurrent tagger."""

from typing import Any

import keras

from keras_seq.layers.internal.seeds import split_seed
from keras_seq.models.checks import check_sizes
from keras_seq.models.text_encoders import recurrent_encoder
from keras_seq.models.text_tagger import TextTagger, tagger_inputs


@keras.saving.register_keras_serializable(package="keras_seq")
class RecurrentTagger(TextTagger):
    """Word tagger with bidirectional recurrent layers, as a functional Keras model.

        x = dropout(E[id]);  bidirectional layers, residual from layer 2
        logits = W dropout(x) + b
        tags = argmax of the logits of each word,
               or the most likely sequence under a `ConditionalRandomField`

    For part-of-speech tags and named entities; set `crf=True` where tags constrain each other, as
    in BIO schemes. If a word consists of several tokens, only its first token is tagged, and the
    field ignores the others. Id 0 is padding, which changes nothing.

    Shapes: B batch, S steps, U units, N tags.

    Args:
        vocabulary_size: Positive integer.
        num_tags: Positive integer N.
        crf: Whether the tags of a sentence depend on each other, by a `ConditionalRandomField`.
        cell: "gru" or "lstm".
        num_layers, embedding_units: Positive integers.
        units: Positive integer U, in each direction.
        dropout: Float in [0, 1), on embeddings, between layers and on the outputs of the last.
        seed: Optional integer, makes the dropout reproducible.
        dtype: Dtype policy of all layers, or None for the global policy.

    Call arguments:
        inputs: Dict of int32 ids `source` `(B, S)`, and bool `begins` `(B, S)`, True at the first
            token of each word.

    Returns:
        Dict of float32 `logits` `(B, S, N)`, and int32 `tags` `(B, S)`, 0 where no word begins.

    The training loss of a model with `crf=True` is the negative of
    `model.field.log_likelihood(logits, tags, begins)`.

    Raises:
        ValueError: If `cell` is unknown, or a size or rate is out of range.

    Example:

    >>> model = RecurrentTagger(20, 3, crf=True, embedding_units=4, units=8)
    >>> outputs = model({
    ...     "source": keras.ops.array([[5, 6, 7, 0]]),
    ...     "begins": keras.ops.array([[True, False, True, False]]),
    ... })
    >>> tuple(outputs["logits"].shape), tuple(outputs["tags"].shape)
    ((1, 4, 3), (1, 4))

    Reference:
        Huang, Xu and Yu, "Bidirectional LSTM-CRF Models for Sequence Tagging", 2015,
        https://arxiv.org/abs/1508.01991; Lample et al., "Neural Architectures for Named Entity
        Recognition", 2016, section 2, https://arxiv.org/abs/1603.01360
    """

    def __init__(
        self,
        vocabulary_size: int,
        num_tags: int,
        crf: bool = False,
        cell: str = "gru",
        num_layers: int = 1,
        embedding_units: int = 256,
        units: int = 256,
        dropout: float = 0.3,
        seed: int | None = None,
        dtype: Any = None,
        name: str = "recurrent_tagger",
        **kwargs: Any,
    ) -> None:
        check_sizes(num_tags=num_tags)
        encoder_seed, output_seed = split_seed(seed, 2)
        inputs = tagger_inputs()
        x, _, _ = recurrent_encoder(inputs["source"], self._arguments, encoder_seed)
        self._connect(inputs, x, output_seed, name=name, **kwargs)
