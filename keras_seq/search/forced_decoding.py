"""Scores of reference targets."""

from typing import Any

from keras import ops

# Shape letters: B batch, S source steps, T target steps, V vocabulary.


def forced_scores(model: Any, source: Any, target_input: Any, target_output: Any) -> Any:
    """Computes the log-probability of each token of reference targets.

        log P(y_t | y_<t, x)

    Args:
        model: A model of `keras_seq.models`.
        source: Int tensor `(B, S)`, padded with 0, or any other input of the model's encoder.
        target_input: Int tensor `(B, T)`, start token first.
        target_output: Int tensor `(B, T)`, end token last, padded with 0.

    Returns:
        Float32 tensor `(B, T)`, 0 at padding.
    """
    logits = model({"source": source, "target": target_input}, training=False)
    logits = ops.cast(logits, "float32")
    picked = ops.take_along_axis(logits, ops.cast(target_output, "int32")[..., None], axis=-1)
    scores = picked[..., 0] - ops.logsumexp(logits, axis=-1)
    return ops.where(ops.equal(target_output, 0), 0.0, scores)
