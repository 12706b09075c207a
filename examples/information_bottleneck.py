"""Deep information bottleneck: compresses one view but keeps information about another.

    python examples/information_bottleneck.py [--picture curve.png]

A hidden letter has two views. The view X has three letters: the hidden one, wrong with probability
ERROR, and two random ones. The view Y is the hidden letter, wrong with the same probability. A code
z of X minimizes

    loss = E[-log q(y | z)] + beta * KL(p(z | x) || N(0, 1)),

which bounds relevance, I(z; Y) >= H(Y) - E[-log q(y | z)], and compression, I(z; X) <= KL.
No code contains more information about Y than X does. That amount is known here: X is Y through a
symmetric channel of error e, so I(X; Y) = log K - H(e) - e log(K - 1). After Tishby et al., 1999;
Alemi et al., "Deep Variational Information Bottleneck", 2017, https://arxiv.org/abs/1612.00410.
"""

import argparse
import math

import keras
import numpy as np
from keras import ops

from keras_seq import layers

LETTERS, ERROR, UNITS, DRAWS = 8, 0.1, 4, 16
BETAS = (0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.2)


def known_information():
    """I(X; Y) of two consecutive symmetric channels."""
    right = (1 - ERROR) ** 2 + ERROR**2 / (LETTERS - 1)
    e = 1 - right
    return math.log(LETTERS) + right * math.log(right) + e * math.log(e / (LETTERS - 1))


def views(count, seed):
    """Samples X `(count, 3)` and Y `(count,)`."""
    random = np.random.default_rng(seed)
    hidden, *others = random.integers(LETTERS, size=(3, count))
    wrong = random.random((2, count)) < ERROR
    seen, y = (hidden + wrong * random.integers(1, LETTERS, size=(2, count))) % LETTERS
    return np.stack([seen, *others], axis=1), y


def bottleneck():
    """Returns the model, its encoder, its decoder, and the sampling layer that holds beta."""
    letters = keras.Input((3,), dtype="int32")
    hidden = keras.layers.GRU(32)(keras.layers.Embedding(LETTERS, 16)(letters))
    posterior = [keras.layers.Dense(UNITS)(hidden) for _ in ("mean", "log variance")]
    sampling = layers.ReparameterizedSampling(seed=1)
    read = keras.Sequential([keras.layers.Dense(64, "relu"), keras.layers.Dense(LETTERS)])
    model = keras.Model(letters, read(sampling(*posterior)))
    return model, keras.Model(letters, posterior), read, sampling


def measured(encoder, read, sampling, x, y):
    """Estimates the bounds on I(z; X) and I(z; Y) from several samples of each code."""
    mean, log_variance = (ops.convert_to_tensor(part) for part in encoder.predict(x, verbose=0))
    rate = ops.mean(sampling.kl_divergence(mean, log_variance))
    loss = 0.0
    for _ in range(DRAWS):
        z = mean + ops.exp(log_variance / 2) * keras.random.normal(ops.shape(mean))
        loss += ops.mean(keras.losses.sparse_categorical_crossentropy(y, read(z), True)) / DRAWS
    return float(rate), math.log(LETTERS) - float(loss)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--picture")
    arguments = parser.parse_args()
    keras.utils.set_random_seed(1)
    train, test, known = views(arguments.pairs, 1), views(20_000, 2), known_information()
    model, encoder, read, sampling = bottleneck()
    model.compile(keras.optimizers.Adam(0.003), keras.losses.SparseCategoricalCrossentropy(True))
    curve = []
    print(f"I(X; Y) = {known:.3f} nats, of all three letters {3 * math.log(LETTERS):.3f}")
    for beta in BETAS:
        # Training continues from the weights of the previous beta.
        sampling.kl_weight.assign(beta)
        model.fit(*train, batch_size=500, epochs=arguments.epochs, verbose=0)
        curve.append(measured(encoder, read, sampling, *test))
        print("beta {:.3f}: compression {:.3f}, relevance {:.3f}".format(beta, *curve[-1]))
    if arguments.picture:
        from matplotlib.figure import Figure

        axes = Figure().subplots()
        axes.plot(*zip(*curve, strict=True), "o-", label="codes, by beta")
        axes.axhline(known, linestyle=":", label="I(X; Y)")
        axes.set(xlabel="compression, nats", ylabel="relevance, nats")
        axes.legend()
        axes.figure.savefig(arguments.picture)


if __name__ == "__main__":
    main()
