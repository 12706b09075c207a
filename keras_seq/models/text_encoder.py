"""Base class of the text encoders."""

from typing import Any

from keras_seq.layers.masked_pooling import KINDS, MaskedPooling
from keras_seq.models.checks import check_choice
from keras_seq.models.functional_model import FunctionalModel

# For encoders of plugins.
__all__ = ["TextEncoder"]


class TextEncoder(FunctionalModel):
    """Functional model that encodes token ids as vectors, for use in other models. Abstract.

    The input is a dict of int32 ids `source` `(B, S)`, 0 in padding, and of further inputs that an
    encoder may have. The output is a dict of
    `steps` `(B, S, U)`, a vector for each token, and `mask` `(B, S)`, True where a token was read.
    The constructor of a subclass calls
    `super().__init__(inputs={"source": ...}, outputs={"steps": ..., "mask": ...}, **kwargs)`.

    `TextClassifier`, `TextTagger` and `BackboneSeq2Seq` add layers to the graph of an encoder.
    """

    poolings: tuple[str, ...] = KINDS

    def pool(self, pooling: str) -> Any:
        """Returns one symbolic vector `(B, U)` for each text.

        Raises ValueError if `pooling` is not one of `poolings`. An encoder that has its own
        vector of a whole text overrides this method.
        """
        check_choice("pooling", pooling, self.poolings)
        layer = MaskedPooling(pooling, dtype=self.dtype_policy, name="pooling")
        return layer(self.output["steps"], mask=self.output["mask"])
