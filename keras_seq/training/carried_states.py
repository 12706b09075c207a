"""Recurrent states that continue from one piece of a text to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_seq import backend
from keras_seq.training.evaluation import perplexity, token_results

# Shape letters: B rows, T steps, U units.

Batches = Iterable[dict[str, np.ndarray]]


class CarriedStates(keras.Model):
    """A `RecurrentLanguageModel` whose states continue from batch to batch; internal.

        states before batch k + 1 = carried * states after batch k

    The gradient does not flow into the batch before, so back-propagation is truncated to a piece
    (Williams and Peng, "An Efficient Gradient-Based Algorithm for On-Line Training of Recurrent
    Network Trajectories", 1990). The states are variables, which checkpoints save.

    Inputs: dict of int32 `target` `(B, T)` and float32 `carried` `(B,)`, 0 where a row begins anew.
    `rows` is B.
    """

    def __init__(self, model: Any, rows: int) -> None:
        super().__init__(name="training_wrapper")
        self.plain = model
        self.with_states = model.with_states
        self.states = {
            name: self.add_weight(
                shape=(rows, tensor.shape[-1]),
                dtype=tensor.dtype,
                initializer="zeros",
                trainable=False,
                name=f"carried_{name}",
            )
            for name, tensor in sorted(self.with_states.input["state"].items())
        }
        self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        carried = inputs["carried"][:, None]
        before = {
            name: state * ops.cast(carried, state.dtype) for name, state in self.states.items()
        }
        pieces = {"target": inputs["target"], "state": before}
        outputs = backend.call_model(self.with_states, pieces, training=training)
        for name, state in self.states.items():
            state.assign(ops.stop_gradient(outputs["state"][name]))
        return outputs["logits"]


def make_carried_evaluation(model: Any) -> Callable[[Batches], dict[str, float]]:
    """Compiles an evaluation as `make_evaluation` does, of batches of `contiguous_batches`."""
    states = {name: tensor.shape[-1] for name, tensor in model.with_states.input["state"].items()}
    dtypes = [str(tensor.dtype) for tensor in model.with_states.input["state"].values()]

    def sums(target_input: Any, target_output: Any, *values: Any) -> Any:
        state = dict(zip(states, values, strict=True))
        inputs = {"target": target_input, "state": state}
        outputs = backend.call_model(model.with_states, inputs, training=False)
        losses, hits = token_results(target_output, outputs["logits"])
        after = [outputs["state"][name] for name in states]
        return ops.sum(losses), ops.sum(hits), after

    ranks = [2] * (2 + len(states))
    compiled = backend.compiled(sums, model.variables, ranks, ["int32", "int32", *dtypes])

    def evaluate(batches: Batches) -> dict[str, float]:
        loss = right = tokens = 0.0
        values: list[Any] = []
        for batch in batches:
            rows = len(batch["carried"])
            values = values or [np.zeros((rows, size), np.float32) for size in states.values()]
            kept = [value * batch["carried"][:, None] for value in values]
            parts = compiled(batch["target_input"], batch["target_output"], *kept)
            loss += float(ops.convert_to_numpy(parts[0]))
            right += float(ops.convert_to_numpy(parts[1]))
            tokens += np.count_nonzero(batch["target_output"])
            values = [backend.to_numpy(value) for value in parts[2]]
        mean = loss / max(tokens, 1.0)
        return {"loss": mean, "perplexity": perplexity(mean), "accuracy": right / max(tokens, 1.0)}

    return evaluate
