"""Evaluation of a variational autoencoder over a corpus."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.precision import at_least_float32
from keras_seq.layers.reparameterized_sampling import kl_of_units
from keras_seq.training.evaluation import perplexity, token_results

# Shape letters: B batch, N texts, S source steps, T target steps, V vocabulary, Z latent units.

Batches = Iterable[dict[str, np.ndarray]]
# The estimate of mutual information compares all pairs of texts. Larger corpora are sampled.
_MAX_COMPARED = 2000
# A unit is active if the variance of its mean over the texts is larger than this (Burda et al.).
_ACTIVE = 0.01


def make_latent_evaluation(model: keras.Model) -> Callable[[Batches], dict[str, float]]:
    """Compiles a function that evaluates a `models.SequenceVAE` on batches of `BatchStream`.

    Each call samples the same z for each text. The values are in nats:

    * `reconstruction`: mean of -log p(x | z) per token, with z sampled from q(z | x);
    * `kl`: mean of KL(q(z | x) || p) per line;
    * `elbo`: mean lower bound on log p(x) per line;
    * `perplexity`: exponential of the negative bound per token, an upper bound on the true
      perplexity;
    * `reconstruction_perplexity`: exponential of `reconstruction`;
    * `accuracy`: share of tokens ranked first, given z and the preceding tokens;
    * `active_units`, `mutual_information`: see the functions of these names.
    """

    units = model.posterior.output["mean"].shape[-1]

    def sums(source: Any, target_input: Any, target_output: Any, noise: Any) -> Any:
        posterior = model.posterior(source, training=False)
        mean = at_least_float32(posterior["mean"])
        log_variance = at_least_float32(posterior["log_variance"])
        noise = ops.cast(ops.reshape(noise, (-1, units)), mean.dtype)
        z = mean + ops.exp(log_variance / 2) * noise
        logits = model.decoder(
            {"latent": ops.cast(z, posterior["mean"].dtype), "target": target_input}, training=False
        )  # (B, T, V)
        losses, hits = token_results(target_output, logits)
        kl = ops.sum(kl_of_units(mean, log_variance), axis=-1)
        return ops.sum(losses, axis=1), ops.sum(hits, axis=1), kl, mean, log_variance

    compiled = backend.compiled(sums, model.variables, [2] * 4, [*["int32"] * 3, "float32"])

    def evaluate(batches: Batches) -> dict[str, float]:
        random = np.random.default_rng(0)
        results: list[list[np.ndarray]] = []
        noises, lengths = [], []
        for batch in batches:
            target = batch["target_output"]
            count = np.count_nonzero(target, axis=1)
            rows = count > 0
            # Sampled only for real rows, so that the noise does not depend on padding rows.
            noise = np.zeros((len(target), units), np.float32)
            noise[rows] = random.standard_normal((int(rows.sum()), units), np.float32)
            parts = compiled(batch["source"], batch["target_input"], target, noise)
            results.append([keras.ops.convert_to_numpy(part)[rows] for part in parts])
            noises.append(noise[rows])
            lengths.append(count[rows])
        losses, hits, kl, means, log_variances = map(np.concatenate, zip(*results, strict=True))
        noise = np.concatenate(noises)
        tokens = max(float(np.concatenate(lengths).sum()), 1.0)
        reconstruction, lines = float(losses.sum(dtype=np.float64)), len(losses)
        divergence = float(kl.sum(dtype=np.float64))
        chosen = np.linspace(0, lines - 1, min(lines, _MAX_COMPARED)).astype(int)
        information, _ = mutual_information(means[chosen], log_variances[chosen], noise[chosen])
        return {
            "reconstruction": reconstruction / tokens,
            "kl": divergence / lines,
            "elbo": -(reconstruction + divergence) / lines,
            "perplexity": perplexity((reconstruction + divergence) / tokens),
            "reconstruction_perplexity": perplexity(reconstruction / tokens),
            "accuracy": float(hits.sum(dtype=np.float64)) / tokens,
            "active_units": float(active_units(means)),
            "mutual_information": information,
        }

    return evaluate


def active_units(means: np.ndarray) -> int:
    """Counts the latent units that depend on the text, from means `(N, Z)`.

        A_z = variance over texts x of the mean of q(z | x);  active where A_z > 0.01

    >>> active_units(np.array([[1.0, 0.0], [-1.0, 0.1]]))
    1

    Reference:
        Burda, Grosse and Salakhutdinov, "Importance Weighted Autoencoders", 2016, section
        5.2, https://arxiv.org/abs/1509.00519
    """
    return int(np.count_nonzero(np.var(means, axis=0) > _ACTIVE))


def mutual_information(
    means: np.ndarray, log_variances: np.ndarray, noise: np.ndarray
) -> tuple[float, float]:
    """Estimates the mutual information of text and latent code in nats, and the KL to the prior.

        I(x; z) = mean over x of KL(q(z | x) || p) - KL(q(z) || p)
                = mean over n of [log q(z_n | x_n) - log q(z_n)]
        q(z) = 1/N sum over n of q(z | x_n),  z_n = mean_n + exp(log_variance_n / 2) noise_n

    The arrays are `(N, Z)`; `noise` is standard normal. The estimate cannot exceed log N. The
    second result is KL(q(z) || p), where q(z) is the aggregate posterior.

    Reference:
        Hoffman and Johnson, "ELBO Surgery: Yet Another Way to Carve Up the Variational
        Evidence Lower Bound", 2016
    """
    means, log_variances = means.astype(np.float64), log_variances.astype(np.float64)
    z = means + np.exp(log_variances / 2) * noise
    constant = means.shape[1] * math.log(2 * math.pi)
    inverse = np.exp(-log_variances)  # (N, Z)
    # (N, N) log q(z_i | x_j) of all pairs (i, j), computed with matrix products.
    squares = (
        np.square(z) @ inverse.T
        - 2 * z @ (means * inverse).T
        + np.sum(np.square(means) * inverse, axis=1)
    )
    log_q = -0.5 * (squares + np.sum(log_variances, axis=1) + constant)
    own = np.diagonal(log_q)
    top = log_q.max(axis=1)
    aggregate = top + np.log(np.mean(np.exp(log_q - top[:, None]), axis=1))  # (N,)
    prior = -0.5 * (np.sum(np.square(z), axis=1) + constant)
    return float(np.mean(own - aggregate)), float(np.mean(aggregate - prior))
