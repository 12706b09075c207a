"""The text tagger."""

from types import SimpleNamespace
from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.conditional_random_field import ConditionalRandomField
from keras_seq.models.checks import check_sizes
from keras_seq.models.functional_model import FunctionalModel
from keras_seq.models.output_mask import AttachMask
from keras_seq.models.text_classifier import to_logits
from keras_seq.models.text_encoder import TextEncoder


@keras.saving.register_keras_serializable(package="keras_seq")
class TextTagger(FunctionalModel):
    """Tagger of words over any text encoder, as a functional Keras model.

        logits = W dropout(encoder(source)) + b
        tags   = argmax of the logits of each word, or the most likely sequence under a
                 `ConditionalRandomField`

    For part-of-speech tags and named entities; set `crf=True` where tags constrain each other, as
    in BIO schemes. If a word consists of several tokens, only its first token is tagged, and the
    field ignores the others. Id 0 is padding, which changes nothing.

    Shapes: B batch, S steps, N tags.

    Args:
        encoder: `RecurrentTextEncoder`, `TransformerTextEncoder`, or another subclass of
            `TextEncoder`. The tagger shares its weights.
        num_tags: Positive integer N.
        crf: Whether the tags of a sentence depend on each other, by a `ConditionalRandomField`.
        dropout: Float in [0, 1), on the outputs of the encoder.
        seed: Optional integer, makes this dropout reproducible.
        **kwargs: `name`, and `dtype`, the policy of the layers after the encoder, which defaults
            to the policy of the encoder.

    Call arguments:
        inputs: Dict of int32 ids `source` `(B, S)`, and bool `begins` `(B, S)`, True at the first
            token of each word.

    Returns:
        Dict of float32 `logits` `(B, S, N)`, and int32 `tags` `(B, S)`, 0 where no word begins.

    To change the logits before the tags are chosen, as `Tagger` does, pass them to `decode`.

    The training loss of a model with `crf=True` is the negative of
    `model.field.log_likelihood(logits, tags, begins)`.

    Raises:
        ValueError: If a size or rate is out of range.

    Example:

    >>> from keras_seq.models import RecurrentTextEncoder
    >>> model = TextTagger(RecurrentTextEncoder(20, units=8), 3, crf=True)
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
        encoder: TextEncoder,
        num_tags: int,
        crf: bool = False,
        dropout: float = 0.1,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_sizes(num_tags=num_tags)
        args = self._arguments
        args.dtype = args.dtype or encoder.dtype_policy
        inputs = {**encoder.input, "begins": keras.Input((None,), dtype="bool", name="begins")}
        # No word begins in padding.
        begins = ops.logical_and(inputs["begins"], ops.not_equal(inputs["source"], 0))
        logits = to_logits(encoder.output["steps"], num_tags, args, seed)
        field = ConditionalRandomField(dtype=args.dtype, name="field") if crf else None
        tags = _best_tags(field, logits, begins)
        # The tags have no mask, because Keras fails on a mask of a tensor `(B, S)`.
        logits = AttachMask(name="masked_logits")(logits, mask=begins)
        super().__init__(inputs=inputs, outputs={"logits": logits, "tags": tags}, **kwargs)
        # The namespace keeps Keras from tracking the layer twice.
        self._parts = SimpleNamespace(field=field)

    @property
    def encoder(self) -> TextEncoder:
        """The text encoder, which shares its weights with this model."""
        return self._arguments.encoder

    @property
    def field(self) -> Any:
        """The `ConditionalRandomField` whose log-likelihood is the training loss, or None."""
        return self._parts.field

    def decode(self, logits: Any, begins: Any) -> Any:
        """Returns the best tags, int32 `(B, S)`, for logits `(B, S, N)`; 0 where no word begins."""
        return _best_tags(self.field, logits, begins)


def _best_tags(field: Any, logits: Any, begins: Any) -> Any:
    if field is not None:
        return field(logits, inputs_mask=begins)
    return ops.where(begins, backend.argmax(logits, axis=-1), 0)
