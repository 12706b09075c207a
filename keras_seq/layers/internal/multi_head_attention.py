"""Base of the attentions with several heads."""

from collections.abc import Callable
from typing import Any

from keras import ops

from keras_seq.layers.internal.adaptable_layer import AdaptableLayer
from keras_seq.layers.internal.checks import STEPS, check_axes, check_positive, check_rates
from keras_seq.layers.internal.dropout import Dropout
from keras_seq.layers.internal.projection import Projection
from keras_seq.layers.internal.scaled_dot_product import (
    attention_weights,
    fused_context,
    has_fused_attention,
)
from keras_seq.layers.internal.shapes import reshape
from keras_seq.layers.internal.weight_arguments import WeightArguments

# Shape letters: B batch, H heads, T query steps, S key steps, F features, D_k and D_v sizes of a
# head's keys and values, D size of either.


class MultiHeadAttention(AdaptableLayer, WeightArguments):
    """Abstract attention with several heads. Subclasses project the inputs.

    Each of `parts` is a `Projection`.
    """

    def __init__(
        self,
        num_heads: int,
        dropout: float = 0.0,
        seed: int | None = None,
        key_size: int | None = None,
        value_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_positive(num_heads=num_heads)
        check_positive(optional=True, key_size=key_size, value_size=value_size)
        check_rates(dropout=dropout)
        self.num_heads = num_heads
        self.dropout = dropout
        self.seed = seed
        self.key_size = key_size
        self.value_size = value_size
        for name in self.parts:
            projection = Projection(**self.weight_arguments(), dtype=self.dtype_policy, name=name)
            setattr(self, name, projection)
        self.dropout_layer = Dropout(dropout, seed=seed, dtype=self.dtype_policy)

    def _head_sizes(self, name: str, shape: Any) -> tuple[int, int]:
        """Returns D_k and D_v. `shape` is the shape of the argument `name`, the queries."""
        check_axes(name, shape, STEPS)
        features = shape[-1]
        if features is None or (self.key_size is None and features % self.num_heads):
            raise ValueError(
                f"`num_heads` ({self.num_heads}) must divide the feature axis of `{name}`, "
                f"received the shape {tuple(shape)}: set `key_size` for heads of another size."
            )
        key_size = self.key_size or features // self.num_heads
        return key_size, self.value_size or key_size

    def _project_heads(
        self, inputs: Any, lengths: Any, project: Callable[[Any], Any], sizes: tuple[int, ...]
    ) -> Any:
        """Projects `(B, T, F)` to `(B, H, T, D)` for each D.

        `project` maps rows of F to rows of `H * sum of sizes` features. The caller passes
        `lengths`, B and T, because computing them in each projection costs as much as the product
        of a single step.
        """
        rows = project(ops.reshape(inputs, (-1, inputs.shape[-1])))
        return _split_heads(rows, lengths, self.num_heads, sizes)

    def _attend(
        self,
        query: Any,
        key: Any,
        value: Any,
        bias: Any,
        has_keys: Any,
        lengths: Any,
        return_weights: bool,
        training: bool | None,
        position: Any = None,
    ) -> Any:
        """Returns outputs `(B, T, F)`, with `return_weights` also the weights `(B, H, T, S)`.

        The arguments are those of `attention_weights`. `lengths` are B and T. `position` is the
        `AttentionPosition` that contributed to `bias`, if any.
        """
        # Not in inference: an exported graph may run on a device without the fused operation.
        needs_weights = return_weights or position is not None or (training and self.dropout)
        if training is not False and not needs_weights and has_fused_attention(query, value):
            return self._merge_heads(fused_context(query, key, value, bias, has_keys), lengths)
        weights = attention_weights(query, key, bias, has_keys)  # (B, H, T, S)
        dropped = self.dropout_layer(ops.cast(weights, value.dtype), training=training)
        context = ops.matmul(dropped, value)
        added = None if position is None else position.context_bias(dropped)
        outputs = self._merge_heads(context if added is None else context + added, lengths)
        return (outputs, weights) if return_weights else outputs

    def _merge_heads(self, context: Any, lengths: Any) -> Any:
        """Projects contexts `(B, H, T, D_v)` to outputs `(B, T, F)`."""
        _, heads, _, size = context.shape
        rows = ops.reshape(ops.transpose(context, (0, 2, 1, 3)), (-1, heads * size))
        return reshape(self.output_projection(rows), (*lengths, self.output_projection.units))


def _split_heads(rows: Any, lengths: Any, num_heads: int, sizes: tuple[int, ...]) -> list[Any]:
    """Splits `(B * T, H * sum of sizes)` into a tensor `(B, H, T, D)` for each size D."""
    if len(set(sizes)) > 1:
        ends = [num_heads * sum(sizes[: i + 1]) for i in range(len(sizes) - 1)]
        parts = ops.split(rows, ends, axis=-1)
        return [
            _split_heads(part, lengths, num_heads, (size,))[0]
            for part, size in zip(parts, sizes, strict=True)
        ]
    if len(sizes) == 1:
        projected = reshape(rows, (*lengths, num_heads, sizes[0]))
        return [ops.transpose(projected, (0, 2, 1, 3))]
    projected = reshape(rows, (*lengths, len(sizes), num_heads, sizes[0]))
    projected = ops.transpose(projected, (2, 0, 3, 1, 4))  # (parts, B, H, T, D)
    # Not by indexing, because the gradient of each slice would be as large as `projected`.
    return ops.unstack(projected, len(sizes), axis=0)
