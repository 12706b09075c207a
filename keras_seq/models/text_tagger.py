"""Base class of the taggers."""

from types import SimpleNamespace
from typing import Any

import keras
from keras import ops

from keras_seq.layers.conditional_random_field import ConditionalRandomField
from keras_seq.models.functional_model import FunctionalModel
from keras_seq.models.inputs import token_input
from keras_seq.models.output_mask import AttachMask
from keras_seq.models.text_classifier import to_logits

# Shape letters: B batch, S steps, U units, N tags.


class TextTagger(FunctionalModel):
    """Functional model from the ids of a text to a tag of each word. Abstract."""

    def _connect(self, inputs: dict[str, Any], x: Any, seed: int | None, **kwargs: Any) -> None:
        """Makes the model of `tagger_inputs` and encoder outputs `(B, S, U)`.

        To be called instead of `super().__init__`.
        """
        args = self._arguments
        # No word begins in padding.
        begins = ops.logical_and(inputs["begins"], ops.not_equal(inputs["source"], 0))
        logits = to_logits(x, args.num_tags, args, seed)
        if args.crf:
            field = ConditionalRandomField(dtype=args.dtype, name="field")
            tags = field(logits, inputs_mask=begins)
        else:
            field = None
            tags = ops.where(begins, ops.cast(ops.argmax(logits, axis=-1), "int32"), 0)
        # The tags have no mask: Keras takes `(B, S)` for vectors and fails at a mask of them.
        logits = AttachMask(name="masked_logits")(logits, mask=begins)
        super().__init__(inputs=inputs, outputs={"logits": logits, "tags": tags}, **kwargs)
        # Keras does not track what is in a namespace: the layer already belongs to the model.
        self._parts = SimpleNamespace(field=field)

    @property
    def field(self) -> Any:
        """The `ConditionalRandomField` whose log-likelihood is the training loss, or None."""
        return self._parts.field


def tagger_inputs() -> dict[str, Any]:
    """Symbolic `source` ids `(B, S)` and `begins`, bool `(B, S)`."""
    return {
        "source": token_input("source"),
        "begins": keras.Input((None,), dtype="bool", name="begins"),
    }
