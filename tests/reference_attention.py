"""Reference attentions with state between decoder steps, in plain numpy, float64.

The code follows the papers, not the package. An `attend` function handles one unpadded row and
stores the previous attention weights, so each row needs a new function.

Shape letters: S source steps, U units.
"""

from collections.abc import Callable

import numpy as np
from reference_recurrent import Weights, sigmoid, softmax

Attend = Callable[[np.ndarray, np.ndarray], np.ndarray]


def monotonic(chances: np.ndarray, previous: np.ndarray) -> np.ndarray:
    """Soft monotonic attention (Raffel et al.): sums over all moves from position k to j."""
    weights = np.zeros(len(chances))
    for j in range(len(chances)):
        for k in range(j + 1):
            way = previous[k]
            for passed in range(k, j):
                way = way * (1 - chances[passed])
            weights[j] += way * chances[j]
    return weights


def hard_monotonic(stays: np.ndarray, previous: np.ndarray) -> np.ndarray:
    """Algorithm 1 of Raffel et al.: moves from the last position to the first that is selected."""
    weights = np.zeros(len(stays))
    if not previous.any():
        return weights
    for j in range(int(previous.argmax()), len(stays)):
        if stays[j]:
            weights[j] = 1
            return weights
    return weights


def additive_energies(weights: Weights, name: str) -> Attend:
    """Energies g v / |v| . tanh(W_q q + W_v h + b) + r, or v . tanh(W_q q + W_v h) + r."""
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
    """Energies g q . (W h) + r, or q . (W h) + r."""
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
    """Equations 8, 9 and, if smoothed, 12 of Chorowski et al., with a centered convolution."""
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
