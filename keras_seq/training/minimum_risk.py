"""Minimum risk training: the model learns from the quality of its own translations."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.search import sample
from keras_seq.text import BOS_ID, PAD_ID

# Shape letters: B batch, S source steps, T target steps, N candidates, L candidate steps,
# M models, V vocabulary, A and C steps of two sequences.

# Below 1, the candidates are closer to what the search finds.
_TEMPERATURE = 0.6
_LONGEST_NGRAM = 4


class MinimumRisk(keras.Model):
    """A model with the expected cost of its translations as a second output; internal.

    In training, N candidates y_n of each source are sampled. The cost of a candidate is 1 - GLEU
    with the target. The output `risk` `(B,)` has the gradient of the expected cost:

        risk = sum over n of (cost_n - mean cost) / (N - 1) log P(y_n | x)

    The costs are constants, so the gradient raises the probability of candidates that are better
    than the other candidates of the same source. The mean of the costs is a baseline that reduces
    the variance. The output `logits` is that of the model for the target.

    Args:
        model: The model of the run; its weights are those of this model. It samples.
        models: The models to train, `model` itself or its members.
        logits: A model with the inputs of `model` and the logits that the loss expects.
        num_samples: Integer N, at least 2.
        max_length: Integer, the maximum length of a candidate with its end token.
        seed: Integer, random seed of the candidates.

    Call arguments:
        inputs: Dict of `source` `(B, S)`, `target` `(B, T)`, which begins with the start token, and
            `reference` `(B, T)`, which ends with the end token.

    Reference:
        Shen et al., "Minimum Risk Training for Neural Machine Translation", ACL 2016,
        https://arxiv.org/abs/1512.02433; GLEU: Wu et al., "Google's Neural Machine Translation
        System", 2016, section 5.2, https://arxiv.org/abs/1609.08144; the baseline: Kool et al.,
        "Buy 4 REINFORCE Samples, Get a Baseline for Free!", 2019,
        https://openreview.net/forum?id=r1lgTGL5DE
    """

    def __init__(
        self,
        model: Any,
        models: list[Any],
        logits: Any,
        num_samples: int,
        max_length: int,
        seed: int,
    ) -> None:
        super().__init__(name="training_wrapper")
        self.plain = model
        self._models = models
        self._logits = logits
        self._num_samples = num_samples
        self._max_length = max_length
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.built = True

    def call(self, inputs: Any, training: Any = None) -> Any:
        # On JAX, `fit` without compilation passes numpy arrays.
        inputs = {name: ops.convert_to_tensor(array) for name, array in inputs.items()}
        source, reference = inputs["source"], inputs.pop("reference")
        outputs = {"logits": self._logits(inputs, training=training)}
        if not training:
            return outputs | {"risk": ops.zeros_like(source[:, 0], dtype="float32")}
        candidates = self._candidates(source)  # (B, N, L)
        cost = 1 - sentence_gleu(candidates, reference[:, None])  # (B, N)
        above_mean = cost - ops.mean(cost, axis=1, keepdims=True)
        total = sum(self._log_probability(model, source, candidates) for model in self._models)
        weights = ops.stop_gradient(above_mean) / (self._num_samples - 1)
        return outputs | {"risk": ops.sum(weights * total, axis=1) / len(self._models)}

    def _candidates(self, source: Any) -> Any:
        state = self.seed_generator.next()
        seed = backend.word(state[0]) + backend.word(state[1])
        # JAX cannot differentiate the loop of the search, not even where the gradient is 0.
        constants = [(weight, ops.stop_gradient(weight.value)) for weight in self.plain.variables]
        with keras.StatelessScope(constants):
            result = sample(
                self.plain,
                source,
                n_best=self._num_samples,
                temperature=_TEMPERATURE,
                max_length=self._max_length,
                seed=seed,
            )
        tokens = ops.stop_gradient(result.tokens)
        return tokens if backend.wants_static_shapes() else tokens[..., : ops.max(result.lengths)]

    def _log_probability(self, model: Any, source: Any, candidates: Any) -> Any:
        """Returns log P of each candidate, `(B, N)`."""
        rows, number, steps = backend.shape(candidates)
        tokens = ops.reshape(candidates, (rows * number, steps))
        # The first step has its start token even if the candidate is empty.
        previous = ops.where(tokens[:, 1:] != PAD_ID, tokens[:, :-1], PAD_ID)
        target = ops.concatenate([ops.full_like(tokens[:, :1], BOS_ID), previous], axis=1)
        inputs = {"source": ops.repeat(source, self._num_samples, axis=0), "target": target}
        logits = ops.cast(model(inputs, training=True), "float32")
        real = ops.not_equal(tokens, PAD_ID)
        # The logits of padding may be NaN, and so would be the gradient, even with a weight of 0.
        logits = ops.where(real[..., None], logits, 0.0)
        chosen = ops.take_along_axis(ops.log_softmax(logits), tokens[..., None], axis=-1)[..., 0]
        return ops.reshape(ops.sum(ops.where(real, chosen, 0.0), axis=1), (rows, number))


class RiskLoss(keras.losses.Loss):
    """The weighted sum of the output `risk` of `MinimumRisk`; internal.

    The value is 0, with the gradient of the sum, because the output is not the risk itself.
    """

    def __init__(self, factor: float) -> None:
        super().__init__(name="risk", reduction="sum")
        self._factor = factor

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        risk = ops.cast(y_pred, "float32")
        if sample_weight is not None:
            risk = risk * ops.cast(sample_weight, "float32")
        total = self._factor * ops.sum(risk)
        return total - ops.stop_gradient(total)


def sentence_gleu(candidates: Any, references: Any) -> Any:
    """Returns the GLEU of sequences of ids: the smaller of n-gram precision and recall.

    Counts n-grams of one to four ids. An n-gram matches at most as often as it occurs in each
    sequence.

    Args:
        candidates: Integer ids `(..., A)`, padded with 0.
        references: Integer ids `(..., C)`, padded with 0.

    Returns:
        A float32 tensor of the leading axes, from 0 to 1. It is 0 for an empty sequence.
    """
    equal = candidates[..., :, None] == references[..., None, :]
    own = candidates[..., :, None] == candidates[..., None, :]
    real = candidates != PAD_ID
    equal, own = equal & real[..., None], own & real[..., None]
    length = ops.sum(ops.cast(real, "float32"), axis=-1)
    longest = ops.maximum(length, ops.sum(ops.cast(references != PAD_ID, "float32"), axis=-1))
    matches, total = 0.0, 0.0
    in_reference, in_candidate = equal, own
    for size in range(1, _LONGEST_NGRAM + 1):
        if size > 1:
            in_reference = in_reference & _shifted(equal, size - 1)
            in_candidate = in_candidate & _shifted(own, size - 1)
        # How often the n-gram at each position of the candidate occurs in each sequence.
        reference_count = ops.sum(ops.cast(in_reference, "float32"), axis=-1)
        own_count = ops.sum(ops.cast(in_candidate, "float32"), axis=-1)
        # Each position adds its part of the smaller count; positions without an n-gram add 0.
        matched = ops.minimum(1.0, reference_count / ops.maximum(own_count, 1.0))
        matches += ops.sum(matched, axis=-1)
        total += ops.maximum(longest - (size - 1), 0.0)
    return matches / ops.maximum(total, 1.0)


def _shifted(equal: Any, steps: int) -> Any:
    """Moves a matrix of comparisons up and left, so that [i, j] is the former [i + n, j + n]."""
    axes = [[0, 0]] * (len(equal.shape) - 2)
    return ops.pad(equal, [*axes, [0, steps], [0, steps]])[..., steps:, steps:]
