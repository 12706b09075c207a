"""A model, or one step of it, with its attention weights as one more output."""

import keras
from keras import ops

# Shape letters: B batch, L layers, H heads, T target steps, S source steps.


def attention_model(model, layer, head, num_layers, num_heads):
    """The functional model that `with_attention` of a model gives, made at first use.

    Args:
        model: Has `_parts.decode(layers)`, symbolic logits and, for each of the layers, its
            weights `(B, H, T, S)`.
        layer: Integer, from `-num_layers` up to, not with, `num_layers`; None for all.
        head: Integer, from 0 up to, not with, `num_heads`; None for the mean.
        num_layers: Layers that attend to the source.
        num_heads: Heads of each.
    """
    if layer is not None and (not isinstance(layer, int) or not -num_layers <= layer < num_layers):
        raise ValueError(
            f"`layer` must be from {-num_layers} to {num_layers - 1}, the decoder's layers that "
            f"attend to the source; received {layer!r}."
        )
    if head is not None and (layer is None or head not in range(num_heads)):
        raise ValueError(
            f"`head` must be from 0 to {num_heads - 1}, a head of the layer, or None for their "
            f"mean, as with all layers; received {head!r}."
        )
    made = model._parts.with_attention
    if layer is not None:
        layer %= num_layers
    if (layer, head) not in made:
        layers = range(num_layers) if layer is None else (layer,)
        logits, weights = model._parts.decode(layers)
        if layer is None:
            attention = ops.stack(weights, axis=1)  # (B, L, H, T, S)
        else:
            attention = ops.mean(weights[0], axis=1) if head is None else weights[0][:, head]
        made[layer, head] = keras.Model(
            model.input,
            {"logits": logits, "attention": attention},
            name=f"{model.name}_with_attention",
        )
    return made[layer, head]


def attending_step(model):
    """The functional model that `attending_step` of a model gives, made at first use.

    Args:
        model: Has `_parts.make_step(attending)`.
    """
    if model._parts.attending_step is None:
        model._parts.attending_step = model._parts.make_step(attending=True)
    return model._parts.attending_step


class WithWeights(keras.layers.Layer):
    """Calls a built layer with `return_weights=True`, as an operation of the graph.

    Keras takes all calls of one layer in a functional model to have as many outputs
    as the first, so the other form needs a layer of its own. Internal, as `Method`.

    Args:
        layer: A built layer whose call takes `return_weights`.

    Call arguments:
        inputs: Dict of the layer's call arguments.
        training: Whether to apply dropout.

    Returns:
        The first output of the layer, and the last, the weights.
    """

    def __init__(self, layer, **kwargs):
        super().__init__(dtype=layer.dtype_policy, **kwargs)
        self.layer = layer
        # The layer casts for itself; ids, masks and float32 islands pass through.
        self._convert_input_args = False
        self.supports_masking = True
        self.built = True

    def call(self, inputs, training=None):
        outputs = self.layer(**inputs, return_weights=True, training=training)
        return outputs[0], outputs[-1]

    def compute_mask(self, inputs, previous_mask=None):
        return None
