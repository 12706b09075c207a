"""Attention is kernel regression: identity projections give the Nadaraya-Watson estimate.

    python examples/kernel_regression.py [--picture regression.png]

Scaled dot-product attention without projections, with keys k_s and values v_s, computes

    f(q) = sum over s of K(q, k_s) v_s / sum over s of K(q, k_s),   K(q, k) = exp(q . k / sqrt d)

which is the regression of Nadaraya (1964) and Watson (1964). If keys and queries have the same
length, q . k = const - |q - k|^2 / 2, so K is a Gaussian. Numbers x become vectors of equal length
on a circle, whose radius r sets the width of the kernel:

    k(x) = r (cos x, sin x),   q . k / sqrt 2 = r^2 cos(x_q - x_k) / sqrt 2

Kernel ridge regression uses the same kernel and solves for weights: f(q) = K(q, k) (K + a I)^-1 v.
"""

import argparse
import math

import numpy as np
from sklearn.kernel_ridge import KernelRidge

from keras_seq import layers

POINTS, RADIUS, NOISE = 60, 12.0, 0.2


def on_circle(x):
    """Maps numbers `(N,)` to points on a circle `(N, 2)`."""
    return RADIUS * np.stack([np.cos(x), np.sin(x)], axis=-1)


def function(x):
    return np.sin(4 * x) + x


def attention(queries, keys, values):
    """Estimate of an attention layer with one head and identity projections."""
    layer = layers.MultiHeadCrossAttention(1, key_size=2, value_size=1)
    steps = np.concatenate([keys, values[:, None]], axis=-1)
    layer.build((1, len(queries), 2), (1, len(steps), 3))
    for bias in (
        layer.query_projection.bias,
        layer.key_value_projection.bias,
        layer.output_projection.bias,
    ):
        bias.assign(np.zeros(bias.shape))
    layer.query_projection.kernel.assign(np.eye(2))
    # The first two features of a step are the key, the third is the value.
    layer.key_value_projection.kernel.assign(np.eye(3))
    layer.output_projection.kernel.assign([[1.0, 0.0]])
    return np.asarray(layer(queries[None].astype("float32"), steps[None].astype("float32")))[
        0, :, 0
    ]


def kernel(queries, keys):
    # Subtracting the constant prevents overflow; the factor cancels in the weighted mean.
    return np.exp((queries @ keys.T - RADIUS**2) / math.sqrt(queries.shape[-1]))


def nadaraya_watson(queries, keys, values):
    """Nadaraya-Watson estimate in closed form, in double precision."""
    similar = kernel(queries, keys)
    return similar @ values / similar.sum(axis=1)


def ridge(queries, keys, values):
    regression = KernelRidge(alpha=0.05, kernel="precomputed").fit(kernel(keys, keys), values)
    return regression.predict(kernel(queries, keys))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--picture")
    picture = parser.parse_args().picture
    generator = np.random.default_rng(1)
    x = np.sort(generator.uniform(0, 3, POINTS))
    y = function(x) + generator.normal(0, NOISE, POINTS)
    at = np.linspace(0, 3, 200)
    regressions = {"attention": attention, "closed form": nadaraya_watson, "kernel ridge": ridge}
    found = {name: f(on_circle(at), on_circle(x), y) for name, f in regressions.items()}

    difference = abs(found["attention"] - found["closed form"]).max()
    print(f"attention is Nadaraya and Watson's regression to within {difference:.1e}")
    for name, values in found.items():
        error = math.sqrt(np.mean((values - function(at)) ** 2))
        print(f"{name}: {error:.3f} from the function, on average; the noise was {NOISE}")
    if picture:
        from matplotlib.figure import Figure

        axes = Figure(figsize=(7, 4)).subplots()
        axes.scatter(x, y, s=10, color="0.6", label="points")
        axes.plot(at, function(at), "k:", label="function")
        for name in ("attention", "kernel ridge"):
            axes.plot(at, found[name], label=name)
        axes.legend()
        axes.figure.savefig(picture)


if __name__ == "__main__":
    main()
