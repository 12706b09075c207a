"""The attentions that go from one step to the next in slow plain numpy, float64.

Written from the papers and not from the package. `attend` functions are of one row without its
padding and keep what they looked at; make a new one for each row.

Shape letters: S source steps, U units.
"""

from collections.abc import Callable

import numpy as np
from reference_recurrent import Weights, sigmoid, softmax

Attend = Callable[[np.ndarray, np.ndarray], np.ndarray]


def monotonic(chances: np.ndarray, previous: np.ndarray) -> np.ndarray:
    """Raffel's sum over all ways to come from a place k to a place j and to stay there."""
    weights = np.zeros(len(chances))
    for j in range(len(chances)):
        for k in range(j + 1):
            way = previous[k]
            for passed in range(k, j):
                way = way * (1 - chances[passed])
            weights[j] += way * chances[j]
    return weights


def hard_monotonic(stays: np.ndarray, previous: np.ndarray) -> np.ndarray:
    """Raffel's algorithm 1: on from the last place to the first that stays."""
    weights = np.zeros(len(stays))
    if not previous.any():
        return weights
    for j in range(int(previous.argmax()), len(stays)):
        if stays[j]:
            weights[j] = 1
            return weights
    return weights


def additive_energies(weights: Weights, name: str) -> Attend:
    """g v / |v| . tanh(W_q q + W_v h + b), or without g and b; plus r."""
    inner = f"{name}/additive"
    vector = weights[f"{inner}/score_vector"]
    bias = np.zeros(len(vector))
    if f"{inner}/score_scale" in weights:
        vector = weights[f"{inner}/score_scale"] * vector / np.linalg.norm(vector)
        bias = weights[f"{inner}/score_bias"]

    def energies(query, value):
        projected = query @ weights[f"{inner}/query_kernel"] + bias
        scores = [
            vector @ np.tanh(projected + row @ weights[f"{inner}/value_kernel"]) for row in value
        ]
        return np.array(scores) + weights[f"{name}/sigmoid_bias"]

    return energies


def general_energies(weights: Weights, name: str) -> Attend:
    """g q . (W h) + r, or without g."""
    scale = weights.get(f"{name}/score_scale", 1.0)

    def energies(query, value):
        scores = [query @ (row @ weights[f"{name}/general/kernel"]) for row in value]
        return scale * np.array(scores) + weights[f"{name}/sigmoid_bias"]

    return energies


def monotonic_attend(energies: Attend, hard: bool = False) -> Attend:
    previous = None

    def attend(query, value):
        nonlocal previous
        if previous is None:
            previous = np.eye(len(value))[0]
        scores = energies(query, value)
        if hard:
            previous = hard_monotonic(scores > 0, previous)
        else:
            previous = monotonic(sigmoid(scores), previous)
        return previous

    return attend


def location_attend(
    weights: Weights, name: str, cumulative: bool = False, smooth: bool = False
) -> Attend:
    """Chorowski's equations 8, 9 and, smoothed, 12; the convolution is centred."""
    named = {key.removeprefix(f"{name}/"): array for key, array in weights.items()}
    filters = named["location_filters"][:, 0]  # (width, F)
    width = len(filters)
    seen = None

    def attend(query, value):
        nonlocal seen
        if seen is None:
            seen = np.zeros(len(value))
        scores = []
        for j, row in enumerate(value):
            located = np.zeros(filters.shape[1])
            for offset in range(width):
                place = j + offset - (width - 1) // 2
                if 0 <= place < len(value):
                    located += seen[place] * filters[offset]
            hidden = (
                query @ named["query_kernel"]
                + row @ named["value_kernel"]
                + located @ named["location_kernel"]
                + named["score_bias"]
            )
            scores.append(named["score_vector"] @ np.tanh(hidden))
        scores = np.array(scores)
        found = sigmoid(scores) / sigmoid(scores).sum() if smooth else softmax(scores)
        seen = seen + found if cumulative else found
        return found

    return attend
