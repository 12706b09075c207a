"""What a self-attention asks of a layer that tells it where its steps stand."""

import keras

# Shape letters: B batch, H heads, T and S steps, D size of a head, K beam, L steps of a cache.


class AttentionPosition(keras.layers.Layer):
    """Base of the layers that `MultiHeadSelfAttention` takes as `position`.

    Each method is one place where positions can come in, and does nothing
    here. Without `position` it is asked about a whole sequence; with it, an
    integer scalar tensor, about the one step of K hypotheses that stand there,
    whose keys are L steps from the first on.
    """

    learns = False
    """Whether `bias` or `read` hold weights, whose gradient needs that of the scores."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build_heads(self, num_heads, key_size, value_size):
        """Builds the layer for heads of these sizes."""
        if not self.built:
            self.build((None, num_heads, None, key_size))

    def turn(self, tensor, position=None):
        """Queries or keys `(B, H, T, D)`, or `(B, H, K, D)` at one step -> the same shape."""
        return tensor

    def bias(self, query, steps, position=None):
        """What to add to scores.

        Args:
            query: Tensor `(B, H, T, D)`, scaled; or `(B, H, K, D)` at one step.
            steps: Integer or scalar tensor S; at one step, L.
            position: Optional integer scalar tensor.

        Returns:
            None or a float32 tensor that broadcasts to `(B, H, T, S)`; at one
            step to `(B, H, K, L)`.
        """
        return None

    def read(self, weights, position=None):
        """What to add to contexts `(B, H, T, D)`, or None.

        Args:
            weights: Tensor `(B, H, T, S)` in the compute dtype; `(B, H, K, L)`
                at one step.
            position: Optional integer scalar tensor.
        """
        return None
