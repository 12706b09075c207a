"""How much the latent codes of a variational autoencoder say about their texts."""

from __future__ import annotations

import math

import numpy as np

# Shape letters: N texts, Z latent units.

# A unit is active if the variance of its mean over the texts is larger than this (Burda et al.).
ACTIVE = 0.01


def active_units(means: np.ndarray) -> int:
    """Counts the latent units that depend on the text, from means `(N, Z)`.

        A_z = variance over texts x of the mean of q(z | x);  active where A_z > 0.01

    >>> active_units(np.array([[1.0, 0.0], [-1.0, 0.1]]))
    1

    Reference:
        Burda, Grosse and Salakhutdinov, "Importance Weighted Autoencoders", 2016, section
        5.2, https://arxiv.org/abs/1509.00519
    """
    return int(np.count_nonzero(np.var(means, axis=0) > ACTIVE))


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
    # log q(z_i | x_j) of all pairs (i, j), by matrix products: (N, N).
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
