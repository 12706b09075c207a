"""Base of the layers that give positions to self-attention."""

from typing import Any

from keras_seq.layers.internal.configured_layer import ConfiguredLayer

# Shape letters: B batch, H heads, T and S steps, D size of a head, K beam, P slots of a cache.


class AttentionPosition(ConfiguredLayer):
    """Base of the layers that `MultiHeadSelfAttention` takes as `position`.

    A subclass overrides the methods it needs. By default they change nothing. A layer with a
    `context_bias` must have a `bias` as well. `step_bias` and `step_context_bias` compute `bias`
    and `context_bias` for one step of K hypotheses, with keys in P slots of a cache.
    """

    def build_heads(self, num_heads: int, key_size: int, value_size: int) -> None:
        """Builds the layer for `num_heads` heads of sizes `key_size` and `value_size`."""
        if not self.built:
            self.build((None, num_heads, None, key_size))

    def rotate(self, tensor: Any, position: Any = None) -> Any:
        """Transforms queries or keys `(B, H, T, D)`, step t at position t.

        With `position`, an integer scalar tensor, transforms queries or keys of K hypotheses
        `(B, H, K, D)`, all at this position.
        """
        return tensor

    def bias(self, query: Any, steps: Any) -> Any:
        """Returns the bias of the scores of scaled queries `(B, H, T, D)`, or None.

        The bias is float32 and broadcasts to `(B, H, T, S)` with S = `steps`.
        """
        return None

    def context_bias(self, weights: Any) -> Any:
        """Returns the bias `(B, H, T, D)` of contexts for weights `(B, H, T, S)`, or None."""
        return None

    def step_bias(self, query: Any, distance: Any) -> Any:
        """Returns the bias of the scores of scaled queries `(B, H, K, D)` of one step, or None.

        `distance` `(B, K, P)` is the number of steps since each slot was written, undefined for
        slots that hold no ancestor of the hypothesis. The bias is float32 and broadcasts to `(B, H,
        K, P)`.
        """
        return None

    def step_context_bias(self, weights: Any, distance: Any) -> Any:
        """Returns the bias `(B, H, K, D)` of the contexts of one step, or None.

        The weights `(B, H, K, P)` are 0 for slots that hold no ancestor of the hypothesis.
        """
        return None
