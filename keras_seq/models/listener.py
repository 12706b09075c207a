"""What a recogniser of speech listens with: its inputs, and a pyramid of recurrent layers."""

import keras
from keras import ops

from keras_seq.layers.internal.scaled_dot_product import zero_padding
from keras_seq.models.recurrent_parts import join_directions

# Shape letters: B batch, N samples, S steps, D features, U units.


def sound_inputs(features):
    """The symbolic source of a model that listens.

    Args:
        features: Layer of a dict of `samples` `(B, N)` and `lengths` `(B,)` that makes features
            and, by `compute_mask`, their mask, such as `LogMelSpectrogram`; or a positive integer
            D, where the source has features itself.

    Returns:
        source: Dict of symbolic `samples` `(B, N)`, or `features` `(B, S, D)`, and `lengths`.
        features: Symbolic `(B, S, D)`.
        mask: Symbolic bool `(B, S)`.

    Raises:
        ValueError: If `features` is neither.
    """
    lengths = keras.Input((), dtype="int32", name="lengths")
    if isinstance(features, keras.layers.Layer):
        source = {"samples": keras.Input((None,), name="samples"), "lengths": lengths}
        return source, features(source), features.compute_mask(source)
    if not isinstance(features, int) or features < 1:
        raise ValueError(
            "`features` must be a layer that makes features of samples, such as "
            f"LogMelSpectrogram, or a positive integer, received {features!r}."
        )
    given = keras.Input((None, features), name="features")
    # Counted like this, steps have numbers in a symbolic tensor of any length, too.
    numbers = ops.cumsum(ops.ones_like(given[..., 0], dtype="int32"), axis=1)
    mask = numbers <= lengths[:, None]
    return {"features": given, "lengths": lengths}, zero_padding(given, mask), mask


def join_pairs(x, mask):
    """Two steps become one.

    Args:
        x: Tensor `(B, S, D)`, its real steps first.
        mask: Bool `(B, S)`.

    Returns:
        Tensor `(B, (S + 1) // 2, 2D)`, where the last real step may have 0 beside it; its mask.
    """
    x = zero_padding(x, mask)
    second = ops.pad(x, [[0, 0], [0, 1], [0, 0]])[:, 1::2]
    return ops.concatenate([x[:, ::2], second], axis=-1), mask[:, ::2]


def listen(layers, dropouts, x, mask):
    """The pyramid: each layer above the first reads pairs of what the one below gave.

    Args:
        layers: From `bidirectional_layers`.
        dropouts: One for each of them, on what it reads.
        x: Symbolic `(B, S, D)`.
        mask: Symbolic bool `(B, S)`.

    Returns:
        Outputs `(B, S', 2U)` with S' of S / 2^(layers - 1), rounded up; their mask; for each
        layer its last states, both directions joined.
    """
    last_states = []
    for i, (layer, dropout) in enumerate(zip(layers, dropouts, strict=True)):
        if i:
            x, mask = join_pairs(x, mask)
        x, *states = layer(dropout(x), mask=mask)
        last_states.append(join_directions(states))
    return x, mask, last_states
