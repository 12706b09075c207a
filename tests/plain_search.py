"""Reference searches in plain Python lists, written from the equations in docs/decoding.md.

Here a model is a function from the tokens so far to the float64 logits of the next token. The
searches take no shortcuts and share no code with the package. `keeps` applies the rules to a
complete target; `constrained` implements the same rules separately, for each next token.
"""

import itertools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from hypothesis import assume, currently_in_test_context
from keras import ops

END, START, FORBIDDEN = 3, 2, (0, 1, 2)
Tokens = tuple[int, ...]
Model = Callable[[Tokens], np.ndarray]


class Found(NamedTuple):
    """A hypothesis: tokens including the end token, score, and whether the limit cut it off."""

    tokens: Tokens
    score: float
    truncated: bool


class Rules(NamedTuple):
    """Constraints on targets. The tokens of the forced prefix are exempt."""

    least: int = 1
    ngram: int = 0
    sequences: tuple[Tokens, ...] = ()
    repetition: float = 1.0
    prefix: Tokens = ()
    forbidden: Tokens = FORBIDDEN


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def penalty(length: int, normalization: str, alpha: float) -> float:
    return {
        "average": length**alpha,
        "gnmt": ((5 + length) / 6) ** alpha,
        "none": 1.0,
    }[normalization]


# ---------------------------------------------------------------- all targets


def keeps(target: Tokens, rules: Rules) -> bool:
    """Checks whether a target, or the beginning of a target, keeps the rules."""
    size, given = rules.ngram, len(rules.prefix)
    behind = range(given, len(target))
    return (
        target[:given] == rules.prefix[: len(target)]
        and not any(target[i] in rules.forbidden for i in behind)
        and not (target[-1] == END and len(target) < rules.least)
        and not any(
            target[: i + 1][-len(sequence) :] == sequence
            for sequence in rules.sequences
            for i in behind
        )
        and not any(
            size and target[j : j + size] == target[i + 1 - size : i + 1]
            for i in behind
            for j in range(i + 1 - size)
        )
    )


def log_probability(logits: Model, target: Tokens, repetition: float = 1.0) -> float:
    """Sums the log-probabilities of a target, with a repetition penalty on earlier tokens."""
    total = 0.0
    for i, token in enumerate(target):
        scores = np.array(logits(target[:i]))
        for seen in set(target[:i]) if repetition != 1 else ():
            scores[seen] *= 1 / repetition if scores[seen] > 0 else repetition
        total += log_softmax(scores)[token]
    return total


def exhaustive_search(
    logits: Model,
    vocabulary: int,
    limit: int,
    normalization: str = "average",
    alpha: float = 1.0,
    rules: Rules = Rules(),  # noqa: B008
    coverage: Callable[[Tokens], float] = lambda tokens: 0.0,
) -> list[Found]:
    """Returns all targets that end within the limit, then all that it cuts, both best first."""
    ended: list[Found] = []
    cut: list[Found] = []

    def extend(tokens: Tokens) -> None:
        for token in range(vocabulary):
            target = (*tokens, token)
            if not keeps(target, rules):
                continue
            if token != END and len(target) < limit:
                extend(target)
                continue
            score = log_probability(logits, target, rules.repetition)
            score = score / penalty(len(target), normalization, alpha) + coverage(target)
            (ended if token == END else cut).append(Found(target, score, token != END))

    extend(())
    return [*sorted(ended, key=_worst_last), *sorted(cut, key=_worst_last)]


def _worst_last(found: Found) -> float:
    return -found.score


# ---------------------------------------------------------------- one token at a time


def constrained(logits: Model, rules: Rules) -> Model:
    """Converts logits to log-probabilities; tokens that break the rules get -inf."""

    def next_log_probabilities(tokens: Tokens) -> np.ndarray:
        scores = np.array(logits(tokens))
        for token in set(tokens) if rules.repetition != 1 else ():
            scores[token] *= 1 / rules.repetition if scores[token] > 0 else rules.repetition
        free = log_softmax(scores)
        if len(tokens) < len(rules.prefix):
            given = rules.prefix[len(tokens)]
            return np.where(np.arange(len(free)) == given, free, -math.inf)
        for token in range(len(free)):
            target = (*tokens, token)
            grams = [target[i : i + rules.ngram] for i in range(len(target) - rules.ngram + 1)]
            if (
                token in rules.forbidden
                or (token == END and len(target) < rules.least)
                or any(target[-len(sequence) :] == sequence for sequence in rules.sequences)
                or (rules.ngram and grams and grams[-1] in grams[:-1])
            ):
                free[token] = -math.inf
        return free

    return next_log_probabilities


def greedy_search(log_probabilities: Model, limit: int) -> list[Found]:
    """Takes the likeliest token per step, lowest id on ties; scores by mean log-probability."""
    tokens: Tokens = ()
    total = 0.0
    while len(tokens) < limit and tokens[-1:] != (END,):
        scores = log_probabilities(tokens)
        token = int(scores.argmax())
        if scores[token] == -math.inf:
            return []
        tokens, total = (*tokens, token), total + scores[token]
    return [Found(tokens, total / len(tokens), tokens[-1] != END)]


def plain_beam_search(
    chain: Model,
    beam_size: int,
    n_best: int,
    limit: int,
    normalization: str = "average",
    alpha: float = 1.0,
    forbidden: Tokens = FORBIDDEN,
    patience: float = 1.0,
    coverage: Callable[[Tokens], float] = lambda tokens: 0.0,
) -> list[Found]:
    """Beam search that stops only if no hypothesis is live or enough hypotheses are finished."""
    room = max(math.ceil(Fraction(str(patience)) * beam_size), n_best)
    spare = max(room - beam_size, 0)

    def score(tokens: Tokens, total: float) -> float:
        return total / penalty(len(tokens), normalization, alpha) + coverage(tokens)

    live: list[tuple[Tokens, float]] = [((), 0.0)]
    finished: list[Found] = []
    for _ in range(limit):
        continuations = [
            ((*tokens, token), total + log_probability)
            for tokens, total in live
            for token, log_probability in enumerate(chain(tokens))
            if token not in forbidden and log_probability > -math.inf
        ]
        # Python's sort is stable, so ties go to the earlier hypothesis, then to the lower id.
        continuations.sort(key=lambda pair: -pair[1])
        # Finished hypotheses hold their beam slots; the best live continuations fill the others.
        frozen = max(len(finished) - spare, 0)
        kept = continuations[: beam_size - frozen]
        _assume_decided([total for _, total in continuations[len(kept) - 1 : len(kept) + 1]])
        finished += [
            Found(tokens, score(tokens, total), False) for tokens, total in kept if END in tokens
        ]
        # With patience, the first `spare` finished hypotheses hand their slots to live ones.
        lasting = [pair for pair in continuations if END not in pair[0]]
        live = lasting[: max(beam_size - max(len(finished) - spare, 0), 0)]
        _assume_decided([total for _, total in lasting[max(len(live) - 1, 0) : len(live) + 1]])
        if not live or len(finished) >= room:
            break
    cut = [Found(tokens, score(tokens, total), True) for tokens, total in live]
    for found in (finished, cut):
        found.sort(key=_worst_last)
        _assume_decided([one.score for one in found[: n_best + 1]])
    return [*finished, *cut][:n_best]


def _assume_decided(scores: list[float]) -> None:
    """Rejects examples whose near-ties float32 may order differently; exact ties are allowed."""
    if currently_in_test_context():
        assume(all(one == other or one - other > 1e-5 for one, other in itertools.pairwise(scores)))


# ---------------------------------------------------------------- sampling


def uniform_number(source: Iterable[int], seed: int, sample: int, step: int) -> float:
    """The uniform random number defined in docs/decoding.md, computed with Python integers."""

    def mix(x: int) -> int:
        x = ((x ^ (x >> 16)) * 0x7FEB352D) % 2**32
        x = ((x ^ (x >> 15)) * 0x846CA68B) % 2**32
        return x ^ (x >> 16)

    odd = 0x9E3779B1
    total = sum(mix((token * odd + mix(place + 1)) % 2**32) for place, token in enumerate(source))
    key = mix((total + mix(seed)) % 2**32)
    number = mix((mix(key ^ mix((sample * odd + 1) % 2**32)) + step * odd) % 2**32)
    return (number >> 8) / 2**24


def weights_to_draw(
    log_probabilities: np.ndarray, temperature: float, top_k: int, top_p: float
) -> list[tuple[int, float]]:
    """Returns the tokens that may be sampled and their probabilities, likeliest first."""
    scores = log_probabilities / temperature
    weights = np.exp(scores - scores.max())
    order = sorted(range(len(weights)), key=lambda i: (-weights[i], i))[: top_k or None]
    shares = weights[order] / weights[order].sum()
    enough = next(i for i in range(len(order)) if shares[: i + 1].sum() >= top_p - 1e-9)
    shares = shares[: enough + 1] / shares[: enough + 1].sum()
    return list(zip(order, shares.tolist(), strict=False))


def plain_samples(
    chain: Model,
    source: Iterable[int],
    samples: int,
    limit: int,
    seed: int = 0,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
) -> list[Found]:
    """Samples targets from log-probabilities; a score is the mean log-probability."""
    found = []
    for sample in range(samples):
        tokens: Tokens = ()
        total = 0.0
        while len(tokens) < limit and tokens[-1:] != (END,):
            scores = chain(tokens)
            choices = weights_to_draw(scores, temperature, top_k, top_p)
            if not top_k and top_p == 1:
                choices.sort()
            number = uniform_number(source, seed, sample, len(tokens))
            passed = itertools.accumulate(share for _, share in choices)
            places = [place for place, share in enumerate(passed) if share > number]
            token = choices[places[0] if places else -1][0]
            tokens, total = (*tokens, token), total + scores[token]
        found.append(Found(tokens, total / len(tokens), tokens[-1] != END))
    return sorted(found, key=_worst_last)


# ---------------------------------------------------------------- results of the package


def results_of(result: Any, row: int) -> list[Found]:
    """Converts one row of a `SearchResult` to a list."""
    tokens, lengths, scores, truncated = (
        np.asarray(ops.convert_to_numpy(part)[row]) for part in result
    )
    found = []
    for n, length in enumerate(lengths):
        assert not tokens[n, length:].any()
        if length:
            found.append(
                Found(tuple(tokens[n, :length].tolist()), float(scores[n]), bool(truncated[n]))
            )
    return found


def assert_best_of(found: list[Found], everything: list[Found]) -> None:
    """Asserts that `found` starts the ranking, allowing any order among near-equal scores."""
    ranked = everything[: len(found)]
    assert [one.truncated for one in found] == [one.truncated for one in ranked]
    np.testing.assert_allclose(
        [one.score for one in found], [one.score for one in ranked], rtol=1e-5, atol=1e-4
    )
    known = {(one.tokens, one.truncated): one.score for one in everything}
    assert len({one.tokens for one in found}) == len(found)
    for one in found:
        assert abs(known[one.tokens, one.truncated] - one.score) <= 1e-4 + 1e-5 * abs(one.score)


def assert_same_results(got: list[Found], expected: list[Found], tolerance: float = 1e-4) -> None:
    assert [(found.tokens, found.truncated) for found in got] == [
        (found.tokens, found.truncated) for found in expected
    ]
    np.testing.assert_allclose(
        [found.score for found in got],
        [found.score for found in expected],
        rtol=1e-5,
        atol=tolerance,
    )
