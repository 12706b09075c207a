"""Encoders of speech in functional models: audio inputs and a recurrent pyramid."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_seq.layers.internal.scaled_dot_product import zero_padding
from keras_seq.models.recurrent_encoder import join_directions

# Shape letters: B batch, N samples, S steps, D features, U units.


def audio_inputs(
    features: Any, noise: Any = None, speed: Any = None
) -> tuple[dict[str, Any], Any, Any]:
    """Makes the symbolic source `(B, ...)`, its features `(B, S, D)` and their mask `(B, S)`.

    `features` is a layer such as `LogMelSpectrogram`, which computes features and, by
    `compute_mask`, their mask from a dict of `samples` `(B, N)` and `lengths` `(B,)`; or a positive
    integer D, if the source is a dict of `features` and `lengths`. Otherwise raises ValueError.
    `noise` is a layer from the dict to other samples; `speed`, from the dict to other samples and
    lengths.
    """
    lengths = keras.Input((), dtype="int32", name="lengths")
    if isinstance(features, keras.layers.Layer):
        source = {"samples": keras.Input((None,), name="samples"), "lengths": lengths}
        heard = source
        if speed is not None:
            heard = dict(zip(("samples", "lengths"), speed(heard), strict=True))
        if noise is not None:
            heard = {**heard, "samples": noise(heard)}
        return source, features(heard), features.compute_mask(heard)
    for name, layer in {"noise": noise, "speed": speed}.items():
        if layer is not None:
            raise ValueError(f"`{name}` changes samples, but the source consists of features.")
    if not isinstance(features, int) or features < 1:
        raise ValueError(
            "`features` must be a layer that makes features of samples, such as "
            f"LogMelSpectrogram, or a positive integer, received {features!r}."
        )
    x = keras.Input((None, features), name="features")
    # A cumulative sum numbers the steps, because the length of a symbolic tensor is unknown.
    step_numbers = ops.cumsum(ops.ones_like(x[..., 0], dtype="int32"), axis=1)
    mask = step_numbers <= lengths[:, None]
    return {"features": x, "lengths": lengths}, zero_padding(x, mask), mask


def join_pairs(x: Any, mask: Any) -> tuple[Any, Any]:
    """Joins each pair of steps into one: `(B, (S + 1) // 2, 2D)` and its mask.

    Real steps come first; an unpaired last step is joined with 0.
    """
    x = zero_padding(x, mask)
    second = ops.pad(x, [[0, 0], [0, 1], [0, 0]])[:, 1::2]
    return ops.concatenate([x[:, ::2], second], axis=-1), mask[:, ::2]


def encode_pyramid(
    layers: Sequence[Any], dropouts: Sequence[Any], x: Any, mask: Any
) -> tuple[Any, Any, list[list[Any]]]:
    """Stacks bidirectional layers. All layers but the first read pairs of steps.

    `dropouts` apply to the inputs of each layer. Returns outputs `(B, P, 2U)`, where P is S /
    2^(layers - 1), rounded up; the mask of the outputs; and the last states of each layer, with
    both directions concatenated.
    """
    last_states = []
    for i, (layer, dropout) in enumerate(zip(layers, dropouts, strict=True)):
        if i:
            x, mask = join_pairs(x, mask)
        x, *states = layer(dropout(x), mask=mask)
        last_states.append(join_directions(states))
    return x, mask, last_states
