"""Loss and token accuracy over a corpus."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_seq import backend
from keras_seq.losses.sequence_cross_entropy import token_losses
from keras_seq.process.threads import num_search_threads, parallel_map

# Shape letters: B batch, S source steps, T target steps, V vocabulary.

Batches = Iterable[dict[str, np.ndarray]]


def make_evaluation(model: keras.Model) -> Callable[[Batches], dict[str, float]]:
    """Compiles a function that evaluates a model of `keras_seq.models`.

    Returns:
        A function that takes batches of `BatchStream` and returns a dict with `loss` (mean negative
        log-likelihood per token in nats, without label smoothing), `perplexity` (exponential of the
        loss) and `accuracy` (share of tokens that the model ranks first under teacher forcing).
    """

    def sums(source: Any, target_input: Any, target_output: Any) -> tuple[Any, Any, Any]:
        logits = model({"source": source, "target": target_input}, training=False)  # (B, T, V)
        losses, hits = token_results(target_output, logits)
        tokens = ops.cast(ops.not_equal(target_output, 0), "float32")
        return ops.sum(losses), ops.sum(hits), ops.sum(tokens)

    compiled = backend.compiled(sums, model.variables, ranks=[2, 2, 2])

    def sums_of(batch: dict[str, np.ndarray]) -> list[float]:
        parts = compiled(batch["source"], batch["target_input"], batch["target_output"])
        return [float(keras.ops.convert_to_numpy(part)) for part in parts]

    def evaluate(batches: Batches) -> dict[str, float]:
        threads = num_search_threads() if backend.computes_on_one_processor() else 1
        totals = np.zeros(3, np.float64)
        for batch_sums in parallel_map(sums_of, list(batches), threads):
            totals += batch_sums
        loss, right, tokens = totals
        mean = loss / max(tokens, 1.0)
        return {"loss": mean, "perplexity": perplexity(mean), "accuracy": right / max(tokens, 1.0)}

    return evaluate


def token_results(targets: Any, logits: Any) -> tuple[Any, Any]:
    """Returns loss and correctness (0 or 1) of each token, float32 `(B, T)`; 0 for padding."""
    real = ops.not_equal(targets, 0)
    losses = ops.where(real, token_losses(targets, logits), 0.0)
    right = ops.equal(ops.cast(ops.argmax(logits, axis=-1), "int32"), targets)
    return losses, ops.cast(ops.logical_and(right, real), "float32")


def perplexity(loss: float) -> float:
    """The exponential of a loss; infinity for the loss of a diverged model."""
    return math.exp(loss) if loss < 700 else math.inf
