"""Encoder of the features of a source, such as the form to inflect a lemma to."""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from keras import ops

from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.transformer.encoder_block import TransformerEncoderBlock
from keras_seq.models.checks import check_choice
from keras_seq.models.recurrent_encoder import make_bidirectional

# Shape letters: B batch, S steps of source and features, E embedding, D units.
FEATURE_ENCODERS = ("none", "linear", "recurrent", "transformer")
_MAX_HEADS = 4


def check_features(arguments: SimpleNamespace) -> None:
    """Raises ValueError for an unknown `feature_encoder` or an impossible `num_features`."""
    kind, count = arguments.feature_encoder, arguments.num_features
    check_choice("feature_encoder", kind, FEATURE_ENCODERS)
    if not 0 <= count < arguments.source_vocabulary_size or (kind != "none" and not count):
        raise ValueError(
            "`num_features` must be a part of the source vocabulary, and not 0 for a "
            f'`feature_encoder` other than "none", received {count!r} with {kind!r}.'
        )


def split_mask(source: Any, arguments: SimpleNamespace) -> tuple[Any, Any]:
    """Returns the masks `(B, S)` of the tokens and of the features that are encoded apart.

    The last `num_features` ids of the source vocabulary are features. Without a separate encoder
    they count as tokens, and the second mask is None. The end token after features is left out:
    recurrent kernels of a GPU need rows with their padding at the end.
    """
    filled = ops.not_equal(source, 0)
    if arguments.feature_encoder == "none":
        return filled, None
    first = arguments.source_vocabulary_size - arguments.num_features
    features = source >= first
    before = ops.equal(ops.cumsum(ops.cast(features, "int32"), axis=1), 0)
    return ops.logical_and(filled, before), features


def make_feature_encoder(
    arguments: SimpleNamespace, units: int, seed: int | None
) -> Callable[[Any, Any], Any]:
    """Makes a function from embeddings `(B, S, E)` and the mask of features to `(B, S, D)`.

    D is `units`. Only a recurrent encoder knows the order of the features.
    """
    dtype = arguments.dtype
    if arguments.feature_encoder == "recurrent":
        if units % 2:
            raise ValueError(f"A recurrent feature encoder needs even units, received {units}.")
        cell = getattr(arguments, "cell", "gru")
        layer = make_bidirectional(cell, units // 2, dtype, "feature_encoder")
        return lambda x, mask: encode_at_the_front(layer, x, mask)
    projection = ExactDense(units, dtype=dtype, name="feature_projection")
    if arguments.feature_encoder == "linear":
        return lambda x, mask: projection(x)
    block = TransformerEncoderBlock(
        math.gcd(units, _MAX_HEADS),
        4 * units,
        dropout=arguments.dropout,
        seed=seed,
        dtype=dtype,
        name="feature_block",
    )
    return lambda x, mask: block(projection(x), mask=mask)


def mean_of_features(x: Any, mask: Any) -> Any:
    """Returns the mean `(B, D)` of `x` `(B, S, D)` over the features, 0 without any."""
    weights = ops.cast(mask, x.dtype)[..., None]
    return ops.sum(x * weights, axis=1) / ops.maximum(ops.sum(weights, axis=1), 1)


def encode_at_the_front(layer: Any, x: Any, mask: Any) -> Any:
    """Runs a recurrent layer over the features alone, which follow the tokens of the source.

    They are moved to the first steps and back, for rows with their padding at the end.
    """
    mask = ops.cast(mask, "int32")
    count = ops.sum(mask, axis=1, keepdims=True)  # (B, 1)
    # Functional models do not know the number of steps while they are built.
    ones = ops.ones_like(mask)
    steps, last = ops.cumsum(ones, axis=1) - 1, ops.sum(ones, axis=1, keepdims=True) - 1
    first = ops.cast(ops.argmax(mask, axis=1), "int32")[:, None]
    front = _take_steps(x, ops.minimum(steps + first, last))
    outputs = layer(front, mask=steps < count)[0]
    return _take_steps(outputs, ops.maximum(steps - first, 0))


def _take_steps(x: Any, steps: Any) -> Any:
    """Takes the `steps` `(B, S)` of `x` `(B, S, D)`."""
    return ops.take_along_axis(x, steps[..., None], axis=1)
