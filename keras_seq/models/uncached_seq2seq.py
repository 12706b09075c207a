"""Search over an encoder-decoder model that has no decoder step."""

from types import SimpleNamespace
from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.models.functional_model import FunctionalModel


@keras.saving.register_keras_serializable(package="keras_seq")
class UncachedSeq2Seq(FunctionalModel):
    """Adapter for a functional encoder-decoder model that has no decoder step.

        logits of step t = model(source, y_1 ... y_t)[t]

    Use it to search and export a model that was built without keras-seq, such as one of plain Keras
    layers or of KerasHub. Each step runs the model again on the whole prefix. Therefore the search
    is slower than with a model that has a decoder step, by about the number of steps.

    Shapes: B batch, S source steps, T target steps, V vocabulary, K hypotheses, L prefix steps.

    Args:
        model: A functional Keras model. Its input is a dict of int32 ids `source` `(B, S)` and
            `target` `(B, T)`, where id 0 is padding. Its output is logits `(B, T, V)`; those of
            step t must not depend on later target ids.
        **kwargs: `name`. The dtypes are those of `model`.

    Call arguments:
        inputs: Dict of `source` `(B, S)` and `target` `(B, T)`.

    Returns:
        Logits `(B, T, V)`, those of `model`.

    Raises:
        ValueError: If the inputs or the output of `model` are different.

    Example:

    >>> source, target = (keras.Input((None,), dtype="int32", name=n) for n in ("source", "target"))
    >>> summary = keras.layers.GRU(4)(keras.layers.Embedding(9, 4)(source))
    >>> steps = keras.layers.GRU(4, return_sequences=True)(
    ...     keras.layers.Embedding(9, 4)(target), initial_state=summary)
    >>> plain = keras.Model({"source": source, "target": target}, keras.layers.Dense(9)(steps))
    >>> from keras_seq.search import generate
    >>> len(generate(UncachedSeq2Seq(plain), [[5, 6, 3]], beam_size=2, max_length=4))
    1
    """

    def __init__(self, model: Any, **kwargs: Any) -> None:
        inputs = model.input
        if not isinstance(inputs, dict) or inputs.keys() != {"source", "target"}:
            raise ValueError(
                "The input of `model` must be a dict of `source` and `target`, received "
                f"{inputs!r}."
            )
        if not hasattr(model.output, "shape") or len(model.output.shape) != 3:
            raise ValueError(
                f"The output of `model` must be logits (B, T, V), received {model.output!r}."
            )
        super().__init__(inputs=inputs, outputs=model.output, **kwargs)
        source = inputs["source"]
        memory = {"mask": ops.not_equal(source, 0), "source": source}
        # The namespace keeps Keras from tracking the weights twice.
        encoder = keras.Model(source, memory, name="encoder")
        self._parts = SimpleNamespace(model=model, encoder=encoder)

    @property
    def encoder(self) -> Any:
        """Functional model from the source to the memory, which has the source itself."""
        return self._parts.encoder

    def initial_state(self, memory: dict[str, Any], beam_size: int, length: Any) -> dict[str, Any]:
        """Returns empty prefixes for `length` steps; see `SearchableModel.initial_state`."""
        batch = backend.shape(memory["mask"])[0]
        return {"beam": {"prefix": ops.zeros((batch, beam_size, length), dtype="int32")}}

    def grow_state(self, state: dict[str, Any], length: Any) -> dict[str, Any]:
        """Returns prefixes that hold `length` more steps; see `SearchableModel.grow_state`."""
        prefix = state["beam"]["prefix"]
        batch, beam_size = backend.shape(prefix)[:2]
        more = ops.zeros((batch, beam_size, length), dtype="int32")
        return {"beam": {"prefix": ops.concatenate([prefix, more], axis=-1)}}

    def decoder_step(self, inputs: dict[str, Any], training: Any = None) -> dict[str, Any]:
        """Runs the model on the prefixes `(B, K, L)`; see `SearchableModel.decoder_step`."""
        token, position = inputs["token"], inputs["position"]
        prefix, source = inputs["state"]["beam"]["prefix"], inputs["memory"]["source"]
        batch, beam_size, steps = backend.shape(prefix)
        here = ops.equal(ops.arange(steps), position)
        prefix = ops.where(here, ops.cast(token, "int32")[..., None], prefix)
        # (B, S) -> (B * K, S)
        sources = ops.reshape(
            ops.repeat(source[:, None], beam_size, axis=1), (-1, backend.shape(source)[1])
        )
        targets = ops.reshape(prefix, (batch * beam_size, steps))
        logits = self._parts.model({"source": sources, "target": targets}, training=training)
        last = ops.take(logits, position, axis=1)
        last = ops.reshape(last, (batch, beam_size, logits.shape[-1]))
        return {"logits": last, "state": {"beam": {"prefix": prefix}}}
