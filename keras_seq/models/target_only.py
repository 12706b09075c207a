"""What stands for the encoder in a model without one."""

import keras
from keras import ops


def dummy_encoder(source):
    """Functional model: ids `(B, S)` -> memory of `mask` `(B, S)`, all that a search asks for.

    Args:
        source: The symbolic ids.
    """
    return keras.Model(source, {"mask": ops.not_equal(source, 0)}, name="encoder")


def no_attention():
    """Raises ValueError: what is asked for needs attention to a source."""
    raise ValueError(
        "A language model looks at no source: it has no attention to show, to guide or to "
        "measure coverage by."
    )
