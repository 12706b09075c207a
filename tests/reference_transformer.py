"""Reference Transformer in plain numpy, float64: loops over rows, heads and steps, no masks.

The code follows "Attention Is All You Need", not the package. Each row is computed alone and
without padding, so neither padding nor other rows of the batch can affect a result.

Shape letters: T target steps, S source steps, D units, H heads, V vocabulary.
"""

import math
from collections.abc import Mapping

import numpy as np

Weights = Mapping[str, np.ndarray]


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def sinusoid(position: int, features: int, max_wavelength: float = 10000.0) -> np.ndarray:
    """Sinusoidal encoding of one position, feature by feature."""
    encoding = np.zeros(features)
    for feature in range(features):
        angle = position / max_wavelength ** (2 * (feature // 2) / features)
        encoding[feature] = math.sin(angle) if feature % 2 == 0 else math.cos(angle)
    return encoding


def normalize(x: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    """Layer normalization of each row of `(T, D)`."""
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * weights[f"{name}/gamma"] + weights[
        f"{name}/beta"
    ]


def attend(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, heads: int, causal: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the contexts `(T, D)` and attention weights `(H, T, S)` of one row."""
    steps, units = query.shape
    size = units // heads
    contexts = np.zeros((steps, units))
    all_weights = np.zeros((heads, steps, len(key)))
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        for step in range(steps):
            seen = step + 1 if causal else len(key)
            scores = key[:seen, part] @ query[step, part] / math.sqrt(size)
            weights = softmax(scores)
            all_weights[head, step, :seen] = weights
            contexts[step, part] = weights @ value[:seen, part]
    return contexts, all_weights


def self_attention(
    x: np.ndarray, weights: Weights, name: str, heads: int, causal: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the outputs `(T, D)` and attention weights `(H, T, T)` of one row."""
    query, key, value = np.split(
        x @ weights[f"{name}/qkv_kernel"] + weights[f"{name}/qkv_bias"], 3, axis=-1
    )
    contexts, all_weights = attend(query, key, value, heads, causal)
    outputs = contexts @ weights[f"{name}/output_kernel"] + weights[f"{name}/output_bias"]
    return outputs, all_weights


def cross_attention(
    x: np.ndarray, memory: np.ndarray, weights: Weights, name: str, heads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the outputs `(T, D)` and attention weights `(H, T, S)` of one row."""
    query = x @ weights[f"{name}/query_kernel"] + weights[f"{name}/query_bias"]
    key, value = np.split(
        memory @ weights[f"{name}/key_value_kernel"] + weights[f"{name}/key_value_bias"],
        2,
        axis=-1,
    )
    contexts, all_weights = attend(query, key, value, heads)
    outputs = contexts @ weights[f"{name}/output_kernel"] + weights[f"{name}/output_bias"]
    return outputs, all_weights


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def gelu(x: np.ndarray) -> np.ndarray:
    """x times the standard normal distribution function at x."""
    return x * np.vectorize(lambda number: 0.5 * (1 + math.erf(number / math.sqrt(2))))(x)


def feed_forward(x: np.ndarray, weights: Weights, name: str, activation=relu) -> np.ndarray:
    hidden = activation(x @ weights[f"{name}/hidden/kernel"] + weights[f"{name}/hidden/bias"])
    return hidden @ weights[f"{name}/projection/kernel"] + weights[f"{name}/projection/bias"]


def residual(x: np.ndarray, function, weights: Weights, name: str, norm: str) -> np.ndarray:
    if norm == "pre":
        return x + function(normalize(x, weights, f"{name}/norm"))
    return normalize(x + function(x), weights, f"{name}/norm")


def encoder_block(
    x: np.ndarray,
    weights: Weights,
    heads: int,
    norm: str,
    activation=relu,
    causal: bool = False,
    prefix: str = "",
) -> np.ndarray:
    """Maps one row `(T, D)` to `(T, D)`; the names of its weights start with `prefix`."""
    x = residual(
        x,
        lambda x: self_attention(x, weights, f"{prefix}attention", heads, causal)[0],
        weights,
        f"{prefix}attention_residual",
        norm,
    )
    return residual(
        x,
        lambda x: feed_forward(x, weights, f"{prefix}feed_forward", activation),
        weights,
        f"{prefix}feed_forward_residual",
        norm,
    )


def decoder_block(
    x: np.ndarray,
    memory: np.ndarray,
    weights: Weights,
    heads: int,
    norm: str,
    activation=relu,
    prefix: str = "",
) -> np.ndarray:
    """Maps one row `(T, D)` to `(T, D)`."""
    x = residual(
        x,
        lambda x: self_attention(x, weights, f"{prefix}self_attention", heads, True)[0],
        weights,
        f"{prefix}self_attention_residual",
        norm,
    )
    x = residual(
        x,
        lambda x: cross_attention(x, memory, weights, f"{prefix}cross_attention", heads)[0],
        weights,
        f"{prefix}cross_attention_residual",
        norm,
    )
    return residual(
        x,
        lambda x: feed_forward(x, weights, f"{prefix}feed_forward", activation),
        weights,
        f"{prefix}feed_forward_residual",
        norm,
    )


def embed(ids: np.ndarray, table: np.ndarray) -> np.ndarray:
    units = table.shape[1]
    return np.stack(
        [math.sqrt(units) * table[token] + sinusoid(step, units) for step, token in enumerate(ids)]
    )


def transformer_row(
    source: np.ndarray, target: np.ndarray, weights: Weights, heads: int, norm: str, activation=relu
) -> np.ndarray:
    """Returns the logits `(T, V)` of one row of unpadded ids."""
    shared = weights.get("embedding/embeddings")
    source_table = weights["source_embedding/embeddings"] if shared is None else shared
    target_table = weights["target_embedding/embeddings"] if shared is None else shared
    blocks = {name.split("/")[0] for name in weights}
    x = embed(source, source_table)
    for i in range(sum(name.startswith("encoder_block_") for name in blocks)):
        x = encoder_block(x, weights, heads, norm, activation, prefix=f"encoder_block_{i}/")
    memory = normalize(x, weights, "encoder_norm") if norm == "pre" else x
    x = embed(target, target_table)
    for i in range(sum(name.startswith("decoder_block_") for name in blocks)):
        x = decoder_block(x, memory, weights, heads, norm, activation, f"decoder_block_{i}/")
    x = normalize(x, weights, "decoder_norm") if norm == "pre" else x
    return x @ target_table.T


def transformer(
    source: np.ndarray, target: np.ndarray, weights: Weights, heads: int, norm: str, activation=relu
) -> np.ndarray:
    """Returns logits `(B, T, V)` of ids right-padded with 0; padded target steps give NaN."""
    rows = []
    for source_row, target_row in zip(source, target, strict=True):
        logits = transformer_row(
            source_row[source_row != 0],
            target_row[target_row != 0],
            weights,
            heads,
            norm,
            activation,
        )
        padding = np.full((len(target_row) - len(logits), logits.shape[1]), np.nan)
        rows.append(np.concatenate([logits, padding]))
    return np.stack(rows)


def named_arrays(layer, prefix: str = "") -> dict[str, np.ndarray]:
    """Returns a layer's weights in float64 by path without `prefix`."""
    arrays = {}
    for weight in layer.weights:
        assert weight.path.startswith(prefix), weight.path
        arrays[weight.path.removeprefix(prefix)] = np.asarray(weight.numpy(), np.float64)
    return arrays


def randomize(layer, seed: int = 0) -> None:
    """Sets all weights to random values, because a bias of 0 or a gain of 1 would hide errors."""
    generator = np.random.default_rng(seed)
    for weight in layer.weights:
        fan_in = int(np.prod(weight.shape[:-1])) if len(weight.shape) > 1 else 4
        weight.assign(generator.normal(size=weight.shape) * fan_in**-0.5)
