"""Base of the layers that give positions to self-attention."""

from typing import Any

from keras_seq.layers.internal.configured_layer import ConfiguredLayer

# Shape letters: B batch, H heads, T and S steps, D size of a head, K beam, P slots of a cache.


class AttentionPosition(ConfiguredLayer):
    """Base of the layers that `MultiHeadSelfAttention` takes as `position`.

    A subclass overrides the methods it needs; here they change nothing. A layer with a
    `context_bias` must have a `bias` as well. `step_bias` and `step_context_bias` are the forms of
    the two for one step of K hypotheses, whose keys lie in P slots of a cache.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True

    def build_heads(self, num_heads: int, key_size: int, value_size: int) -> None:
        """Builds the layer for heads of these sizes."""
        if not self.built:
            self.build((None, num_heads, None, key_size))

    def rotate(self, tensor: Any, position: Any = None) -> Any:
        """Transforms queries or keys `(B, H, T, D)`, step t at position t.

        With `position`, an integer scalar tensor, transforms those of K hypotheses
        `(B, H, K, D)`, all at this position.
        """
        return tensor

    def bias(self, query: Any, steps: Any) -> Any:
        """Bias of the scores.

        Args:
            query: Tensor `(B, H, T, D)`, scaled.
            steps: Integer or scalar tensor S.

        Returns:
            None, or a float32 tensor that broadcasts to `(B, H, T, S)`.
        """
        return None

    def context_bias(self, weights: Any) -> Any:
        """Bias of the contexts, `(B, H, T, D)` or None.

        Args:
            weights: Tensor `(B, H, T, S)` in the compute dtype.
        """
        return None

    def step_bias(self, query: Any, distance: Any) -> Any:
        """Bias of the scores of one step.

        Args:
            query: Tensor `(B, H, K, D)`, scaled.
            distance: Int32 tensor `(B, K, P)`, the number of steps since each slot was written.
                Undefined for slots that hold no ancestor of the hypothesis.

        Returns:
            None, or a float32 tensor that broadcasts to `(B, H, K, P)`.
        """
        return None

    def step_context_bias(self, weights: Any, distance: Any) -> Any:
        """Bias of the contexts of one step, `(B, H, K, D)` or None.

        Args:
            weights: Tensor `(B, H, K, P)` in the compute dtype, 0 for slots that hold no ancestor
                of the hypothesis.
            distance: As for `step_bias`.
        """
        return None
