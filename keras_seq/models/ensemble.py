"""Ensembles of trained models, which can be searched like a single model."""

import contextlib
from collections.abc import Sequence
from typing import Any

from keras import ops

from keras_seq.backend import call_model

# Shape letters: B batch, T target steps, K beam, V vocabulary.


class Ensemble:
    """Several trained models as one searchable model.

        P(y_t | y_<t, x) = mean_m P_m(y_t | y_<t, x)

    Pass it to `beam_search`, `sample` or `forced_scores` instead of a model. To train the members
    together, see `EnsembleSeq2Seq`.

    Args:
        models: Models of `keras_seq.models` that share source and target vocabularies. They may
            belong to different families.

    Raises:
        ValueError: If `models` is empty, or their vocabularies have different sizes.

    Example:

    >>> from keras_seq.models import Transformer
    >>> from keras_seq.search import beam_search
    >>> shape = {"units": 8, "feedforward_units": 16, "num_heads": 2}
    >>> models = [Transformer(20, 20, layers, 1, **shape) for layers in (1, 2)]
    >>> tuple(beam_search(Ensemble(models), ops.array([[5, 6, 3]]), max_length=4).tokens.shape)
    (1, 1, 4)

    Reference:
        Sutskever, Vinyals and Le, "Sequence to Sequence Learning with Neural Networks", 2014,
        section 3.6, https://arxiv.org/abs/1409.3215
    """

    def __init__(self, models: Sequence[Any]) -> None:
        self.models = list(models)
        if not self.models:
            raise ValueError("`models` must hold at least one model, received none.")
        sizes = [model.output.shape[-1] for model in self.models]
        if len(set(sizes)) > 1:
            raise ValueError(
                f"the models must share a vocabulary, received vocabularies of {sizes} tokens."
            )

    @property
    def variables(self) -> list[Any]:
        """Variables of all models."""
        return [variable for model in self.models for variable in model.variables]

    @property
    def weights(self) -> list[Any]:
        """Weights of all models."""
        return [weight for model in self.models for weight in model.weights]

    def __call__(self, inputs: dict[str, Any], training: bool = False) -> Any:
        """Returns log-probabilities `(B, T, V)` of the token after each token of the target."""
        return _mean([model(inputs, training=training) for model in self.models])

    def encoder(self, source: Any, training: bool = False) -> dict[str, Any]:
        """Returns the mask of the first model's memory, and the memories of all `models`."""
        memories = [model.encoder(source, training=training) for model in self.models]
        return {"mask": memories[0]["mask"], "models": memories}

    def initial_state(self, memory: dict[str, Any], beam_size: int, length: Any) -> dict[str, Any]:
        """Returns the states of all models before the first step."""
        pairs = zip(self.models, memory["models"], strict=True)
        return _join_states([model.initial_state(part, beam_size, length) for model, part in pairs])

    def grow_state(self, state: dict[str, Any], length: Any) -> dict[str, Any]:
        """Returns the states of all models with room for `length` more steps."""
        pairs = zip(self.models, _split_state(state), strict=True)
        return _join_states([model.grow_state(part, length) for model, part in pairs])

    def decoder_step(self, inputs: dict[str, Any], training: bool = False) -> dict[str, Any]:
        """Runs one step of K hypotheses. The output `logits` are log-probabilities."""
        return self._step([model.decoder_step for model in self.models], inputs, training)

    @property
    def decoder_step_with_attention(self) -> Any:
        """`decoder_step` with the mean attention of the models as a further output `attention`.

        Only ensembles whose models all have it have this attribute.
        """
        steps = [model.decoder_step_with_attention for model in self.models]
        return lambda inputs, training=False: self._step(steps, inputs, training)

    def cached_output_kernel(self) -> contextlib.AbstractContextManager[Any]:
        """Context manager in which the steps of each model share a transposed output kernel."""
        stack = contextlib.ExitStack()
        for model in self.models:
            if hasattr(model, "cached_output_kernel"):
                stack.enter_context(model.cached_output_kernel())
        return stack

    def _step(self, steps: list[Any], inputs: dict[str, Any], training: bool) -> dict[str, Any]:
        outputs = [
            call_model(step, {**inputs, "state": state, "memory": memory}, training=training)
            for step, state, memory in zip(
                steps, _split_state(inputs["state"]), inputs["memory"]["models"], strict=True
            )
        ]
        joined = {
            "logits": _mean([output["logits"] for output in outputs]),
            "state": _join_states([output["state"] for output in outputs]),
        }
        if "attention" in outputs[0]:
            joined["attention"] = sum(output["attention"] for output in outputs) / len(outputs)
        return joined


def _mean(logits: list[Any]) -> Any:
    """Returns the logarithm of the mean probability, from the logits of each model."""
    log_probabilities = [ops.log_softmax(ops.cast(x, "float32"), axis=-1) for x in logits]
    total = ops.logsumexp(ops.stack(log_probabilities, axis=0), axis=0)
    return total - ops.log(ops.cast(len(logits), "float32"))


def _join_states(states: list[dict[str, Any]]) -> dict[str, Any]:
    return {part: [state[part] for state in states] for part in ("beam", "shared")}


def _split_state(state: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"beam": beam, "shared": shared}
        for beam, shared in zip(state["beam"], state["shared"], strict=True)
    ]
