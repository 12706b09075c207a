"""Models that can return their attention to the source."""

import functools
from typing import Any

import keras
from keras import ops

from keras_seq.models.searchable_model import SearchableModel

# Shape letters: B batch, L layers, H heads, K beam, T target steps, S source steps, V vocabulary.


class AttentiveModel(SearchableModel):
    """Searchable model whose decoder attends to the source. Abstract."""

    def _set_attention(self, decode: Any, num_layers: int, num_heads: int) -> None:
        """Sets the parts that `with_attention` uses. Call this method after `_set_parts`.

        `decode` maps layer indices to the symbolic logits `(B, T, V)` and a list of the attention
        weights `(B, H, T, S)` of each of these layers.
        """
        self._parts.decode = decode
        self._parts.num_layers, self._parts.num_heads = num_layers, num_heads
        self._parts.with_attention = {}

    @functools.cached_property
    def decoder_step_with_attention(self) -> Any:
        """`decoder_step` with a further output `attention`, float32 `(B, K, S)`.

        It is the attention of the last layer that attends to the source, averaged over heads.
        """
        return self._parts.decoder.step(self.encoder.output, return_attention=True)

    def with_attention(self, layer: int | None = -1, head: int | None = None) -> Any:
        """Returns this model with its attention to the source as a second output.

        The returned model shares all weights with this one.

        Args:
            layer: Index of a decoder layer that attends to the source; a Transformer has one in
                each block, a recurrent model has one. -1 is the last. None returns all layers
                and heads, `(B, L, H, T, S)`.
            head: Index of a head; None for the mean over heads.

        Returns:
            Functional model of the same inputs with the outputs `logits` `(B, T, V)` and
            `attention` `(B, T, S)`, float32 and 0 on padding. Row t of the attention belongs to
            the step that scores the token after `target[:, t]`.

        Raises:
            ValueError: If there is no such layer or head.
        """
        num_layers, num_heads = self._parts.num_layers, self._parts.num_heads
        layers = range(-num_layers, num_layers)
        if layer is not None and (not isinstance(layer, int) or layer not in layers):
            raise ValueError(
                f"`layer` must be from {-num_layers} to {num_layers - 1}, the decoder layers that "
                f"attend to the source, or None for all; received {layer!r}."
            )
        if head is not None and (layer is None or head not in range(num_heads)):
            raise ValueError(
                f"`head` must be from 0 to {num_heads - 1}, or None for the mean over heads, as "
                f"it must be with layer=None; received {head!r}."
            )
        if layer is not None:
            layer %= num_layers
        models = self._parts.with_attention
        if (layer, head) not in models:
            models[layer, head] = self._make_with_attention(layer, head)
        return models[layer, head]

    def _make_with_attention(self, layer: int | None, head: int | None) -> Any:
        layers = range(self._parts.num_layers) if layer is None else (layer,)
        logits, weights = self._parts.decode(layers)
        if layer is None:
            attention = ops.stack(weights, axis=1)  # (B, L, H, T, S)
        else:
            attention = ops.mean(weights[0], axis=1) if head is None else weights[0][:, head]
        return keras.Model(
            self.input,
            {"logits": logits, "attention": attention},
            name=f"{self.name}_with_attention",
        )


def call_with_weights(layer: Any, x: Any, arguments: dict[str, Any], name: str) -> tuple[Any, Any]:
    """Returns the first output of a layer in a functional model, and its attention weights."""
    if not layer.built:
        # Builds the layer outside of the wrapper, whose name its weights would get.
        layer(x, **arguments)
    outputs, weights = WithWeights(layer, name=name)({"inputs": x, **arguments})
    return outputs, weights


class WithWeights(keras.layers.Layer):
    """Calls a built layer with `return_weights=True` in a functional model.

    Keras expects every call of a layer in a functional model to have as many outputs as the first
    call, so a call with weights needs another layer. The inputs are a dict of call arguments; the
    outputs are the first output of the layer and its last output, the weights.
    """

    def __init__(self, layer: Any, **kwargs: Any) -> None:
        super().__init__(dtype=layer.dtype_policy, **kwargs)
        self.layer = layer
        # The layer casts its own inputs; ids, masks and float32 tensors must not be cast here.
        self._convert_input_args = False
        self.supports_masking = True
        self.built = True

    def call(self, inputs: Any, training: Any = None) -> Any:
        outputs = self.layer(**inputs, return_weights=True, training=training)
        return outputs[0], outputs[-1]

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> None:
        return None
