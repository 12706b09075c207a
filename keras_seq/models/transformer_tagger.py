"""The Transformer tagger."""

from typing import Any

import keras

from keras_seq.layers.internal.seeds import split_seed
from keras_seq.models.checks import check_sizes
from keras_seq.models.text_encoders import transformer_encoder
from keras_seq.models.text_tagger import TextTagger, tagger_inputs


@keras.saving.register_keras_serializable(package="keras_seq")
class TransformerTagger(TextTagger):
    """Word tagger with the encoder of a Transformer, as a functional Keras model.

        x = dropout(sqrt(D) E[id] + position);  blocks
        logits = W dropout(x) + b
        tags = argmax of the logits of each word,
               or the most likely sequence under a `ConditionalRandomField`

    For large tagged corpora; `RecurrentTagger` needs fewer sentences. If a word consists of several
    tokens, only its first token is tagged, and the field ignores the others. Id 0 is padding, which
    changes nothing.

    Shapes: B batch, S steps, D units, N tags.

    Args:
        vocabulary_size: Positive integer.
        num_tags: Positive integer N.
        crf: Whether the tags of a sentence depend on each other, by a `ConditionalRandomField`.
        num_layers: Positive integer.
        units: Positive integer D, a multiple of `num_heads`.
        feedforward_units, num_heads: Positive integers.
        dropout: Float in [0, 1), on embeddings, on the output of each part of a block and on the
            outputs of the encoder.
        attention_dropout: Float in [0, 1), on attention weights.
        activation_dropout: Float in [0, 1), on the hidden units of the feed-forward layers.
        activation: Name of a Keras activation.
        norm: `"pre"` or `"post"`.
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
        https://arxiv.org/abs/1706.03762; Devlin et al., "BERT: Pre-training of Deep Bidirectional
        Transformers for Language Understanding", 2019, section 5.3,
        https://arxiv.org/abs/1810.04805, who tag first tokens
    """

    def __init__(
        self,
        vocabulary_size: int,
        num_tags: int,
        crf: bool = False,
        num_layers: int = 2,
        units: int = 256,
        feedforward_units: int = 1024,
        num_heads: int = 4,
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        activation_dropout: float = 0.1,
        activation: str = "relu",
        norm: str = "pre",
        seed: int | None = None,
        dtype: Any = None,
        name: str = "transformer_tagger",
        **kwargs: Any,
    ) -> None:
        check_sizes(num_tags=num_tags)
        encoder_seed, output_seed = split_seed(seed, 2)
        inputs = tagger_inputs()
        x, _ = transformer_encoder(inputs["source"], self._arguments, encoder_seed)
        self._connect(inputs, x, output_seed, name=name, **kwargs)
