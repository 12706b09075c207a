"""What a self-attention asks of a layer that tells it where its steps stand."""

import keras

# Shape letters: B batch, H heads, T and S steps, D size of a head, K beam, P slots of a cache.


class AttentionPosition(keras.layers.Layer):
    """Base of the layers that `MultiHeadSelfAttention` takes as `position`.

    Each method is one place where positions can come in, and does nothing
    here. `step_bias` and `step_read` are `bias` and `read` for one step of K
    hypotheses, whose keys lie in P slots of a cache.
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
        """Queries or keys `(B, H, T, D)` -> the same shape.

        With `position`, an integer scalar tensor, those of K hypotheses that all stand there,
        `(B, H, K, D)`.
        """
        return tensor

    def bias(self, query, steps):
        """What to add to scores.

        Args:
            query: Tensor `(B, H, T, D)`, scaled.
            steps: Integer or scalar tensor S.

        Returns:
            None or a float32 tensor that broadcasts to `(B, H, T, S)`.
        """
        return None

    def read(self, weights):
        """What to add to contexts `(B, H, T, D)`, or None.

        Args:
            weights: Tensor `(B, H, T, S)` in the compute dtype.
        """
        return None

    def step_bias(self, query, ago):
        """What to add to the scores of a step.

        Args:
            query: Tensor `(B, H, K, D)`, scaled.
            ago: Int32 tensor `(B, K, P)`: how many steps before this one each slot was
                written. It means nothing where a slot is not the hypothesis' past.

        Returns:
            None or a float32 tensor that broadcasts to `(B, H, K, P)`.
        """
        return None

    def step_read(self, weights, ago):
        """What to add to the contexts `(B, H, K, D)` of a step, or None.

        Args:
            weights: Tensor `(B, H, K, P)` in the compute dtype, 0 where a slot is not the
                hypothesis' past.
            ago: As for `step_bias`.
        """
        return None
