"""Base class of layers whose kernels can be quantized and adapted."""

from collections.abc import Iterator
from typing import Any

import keras

from keras_seq.layers.internal.configured_layer import ConfiguredLayer


class AdaptableLayer(ConfiguredLayer):
    """Abstract layer with kernels in inner layers of the class `keras.layers.Dense`.

    It has the two methods of `Dense` that change a kernel, for all of these kernels.
    """

    # Names of the attributes that hold `Dense` or adaptable layers, or lists of them.
    parts: tuple[str, ...] = ()

    def dense_layers(self) -> Iterator[keras.layers.Dense]:
        """Yields the layers that hold the kernels."""
        for part in keras.tree.flatten([getattr(self, name) for name in self.parts]):
            if isinstance(part, AdaptableLayer):
                yield from part.dense_layers()
            elif part is not None:  # a layer that `build` makes
                yield part

    def quantize(self, mode: Any = None, type_check: bool = True, config: Any = None) -> None:
        """Quantizes the kernels, as `quantize` of `keras.layers.Dense`."""
        for layer in self.dense_layers():
            layer.quantize(mode, config=config)

    def enable_lora(self, rank: int, **options: Any) -> None:
        """Freezes the kernels and adds trained matrices to them, as in `keras.layers.Dense`.

        Each kernel W becomes W + alpha / rank A B. `options` are `lora_alpha`, `a_initializer` and
        `b_initializer`. Biases and normalizations remain trainable. A saved file holds the sums.
        """
        for layer in self.dense_layers():
            layer.enable_lora(rank, **options)

    def get_config(self) -> dict[str, Any]:
        policy = policy_with_quantization(self.dtype_policy, self.dense_layers())
        return {**super().get_config(), "dtype": keras.dtype_policies.serialize(policy)}


def policy_with_quantization(policy: Any, layers: Any) -> Any:
    """Returns a dtype policy from which a new layer or model has the same quantized `layers`."""
    quantized = {
        layer.path: layer.dtype_policy for layer in layers if layer.quantization_mode is not None
    }
    if not quantized:
        return policy
    if isinstance(policy, keras.dtype_policies.DTypePolicyMap):
        quantized, policy = {**policy, **quantized}, policy.default_policy
    return keras.dtype_policies.DTypePolicyMap(policy, quantized)
