"""What a tagger makes of the vectors of its encoder."""

import keras
from keras import ops

from keras_seq.layers.conditional_random_field import ConditionalRandomField
from keras_seq.models.output_mask import AttachMask
from keras_seq.models.text_model import to_logits

# Shape letters: B batch, S steps, U units, N tags.


def tagger_inputs():
    """Symbolic `source` ids `(B, S)` and `begins`, bool `(B, S)`."""
    return {
        "source": keras.Input((None,), dtype="int32", name="source"),
        "begins": keras.Input((None,), dtype="bool", name="begins"),
    }


def tagger_outputs(x, inputs, config, seed, dtype):
    """A dict of `logits` and `tags`, and the field that found these, or None.

    The logits carry a mask, True at the first token of each word.

    Args:
        x: Symbolic tensor `(B, S, U)`.
        inputs: From `tagger_inputs`.
        config: Dict of a model's arguments.
        seed: Optional integer, of a dropout.
        dtype: Dtype policy of the layers, or None for the default.
    """
    # Padding begins no word, whatever is said of it.
    begins = ops.logical_and(inputs["begins"], ops.not_equal(inputs["source"], 0))
    logits = to_logits(x, config["num_tags"], config["dropout"], seed, dtype)
    if config["crf"]:
        field = ConditionalRandomField(dtype=dtype, name="field")
        tags = field(logits, inputs_mask=begins)
    else:
        field = None
        tags = ops.where(begins, ops.cast(ops.argmax(logits, axis=-1), "int32"), 0)
    # Not on the tags: Keras takes `(B, S)` for S numbers of one answer, and fails at their mask.
    return {"logits": AttachMask(name="masked_logits")(logits, mask=begins), "tags": tags}, field
