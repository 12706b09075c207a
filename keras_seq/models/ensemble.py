"""Several models that translate together."""

import contextlib

from keras import ops

# Shape letters: B batch, K beam, S source steps, V vocabulary.


class Ensemble:
    """Models of one vocabulary as one model of the search contract.

        P(y_t | y_<t, x) = mean_m P_m(y_t | y_<t, x)

    `beam_search`, `sample` and `forced_scores` take it in place of a model.

    Args:
        models: Models of `keras_seq.models` that share source and target
            vocabularies; they may be of different families.

    Raises:
        ValueError: If there is none, or their vocabularies have different sizes.

    Example:

    >>> from keras_seq.models import Transformer
    >>> from keras_seq.search import beam_search
    >>> shape = {"units": 8, "feedforward_units": 16, "num_heads": 2}
    >>> models = [Transformer(20, 20, layers, 1, **shape) for layers in (1, 2)]
    >>> tuple(beam_search(Ensemble(models), ops.array([[5, 6, 3]]), max_length=4).tokens.shape)
    (1, 1, 4)

    Reference:
        Sutskever, Vinyals and Le, "Sequence to Sequence Learning with Neural
        Networks", 2014, section 3.6, https://arxiv.org/abs/1409.3215
    """

    def __init__(self, models):
        self.models = list(models)
        if not self.models:
            raise ValueError("`models` must hold at least one model, received none.")
        sizes = [model.output.shape[-1] for model in self.models]
        if len(set(sizes)) > 1:
            raise ValueError(
                f"the models must share a vocabulary, received vocabularies of {sizes} tokens."
            )

    @property
    def variables(self):
        """Those of all models."""
        return [variable for model in self.models for variable in model.variables]

    @property
    def weights(self):
        """Those of all models."""
        return [weight for model in self.models for weight in model.weights]

    def __call__(self, inputs, training=False):
        """Log-probabilities `(B, T, V)` of the tokens that follow each of `inputs["target"]`."""
        return _mean([model(inputs, training=training) for model in self.models])

    def encoder(self, source, training=False):
        """The memories of all models."""
        return {"each": [model.encoder(source, training=training) for model in self.models]}

    def step_scope(self):
        """A context for steps, with what all models compute once for theirs."""
        stack = contextlib.ExitStack()
        for model in self.models:
            stack.enter_context(getattr(model, "step_scope", contextlib.nullcontext)())
        return stack

    def initial_state(self, memory, beam_size, length):
        """The states of all models before the first step."""
        return _joined(
            [
                model.initial_state(own, beam_size, length)
                for model, own in zip(self.models, memory["each"], strict=True)
            ]
        )

    def grow_state(self, state, length):
        """The states of all models, with room for more steps."""
        return _joined(
            [
                model.grow_state(own, length)
                for model, own in zip(self.models, _parted(state), strict=True)
            ]
        )

    def decoder_step(self, inputs, training=False):
        """One step of K hypotheses by all models: `logits` are log-probabilities."""
        return self._step([model.decoder_step for model in self.models], inputs, training)

    def attending_step(self, inputs, training=False):
        """As `decoder_step`, with the mean of what the models look at as `attention`."""
        return self._step([model.attending_step for model in self.models], inputs, training)

    def _step(self, steps, inputs, training):
        out = [
            step({**inputs, "state": state, "memory": memory}, training=training)
            for step, state, memory in zip(
                steps, _parted(inputs["state"]), inputs["memory"]["each"], strict=True
            )
        ]
        joined = {
            "logits": _mean([own["logits"] for own in out]),
            "state": _joined([own["state"] for own in out]),
        }
        if "attention" in out[0]:
            joined["attention"] = sum(own["attention"] for own in out) / len(out)
        return joined


def _mean(logits):
    """Logarithm of the mean probability, of logits of each model."""
    each = ops.stack([ops.log_softmax(ops.cast(one, "float32"), axis=-1) for one in logits], axis=0)
    return ops.logsumexp(each, axis=0) - ops.log(ops.cast(len(logits), "float32"))


def _joined(states):
    return {part: [state[part] for state in states] for part in ("beam", "shared")}


def _parted(state):
    return [
        {"beam": beam, "shared": shared}
        for beam, shared in zip(state["beam"], state["shared"], strict=True)
    ]
