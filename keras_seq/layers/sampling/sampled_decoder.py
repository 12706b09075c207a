"""Decoder built from a cell, an embedding and an output layer, fed by a sampler."""

from typing import Any

import keras
from keras import ops, tree

from keras_seq import backend
from keras_seq.layers.attention.attention_cell import AttentionCell
from keras_seq.layers.attention.attention_decoder import AttentionDecoder
from keras_seq.layers.internal.configured_layer import ConfiguredLayer
from keras_seq.layers.internal.step_loop import run_steps
from keras_seq.layers.sampling.samplers import (
    CategoricalSampler,
    GreedySampler,
    Sampler,
    ScheduledEmbeddingSampler,
    ScheduledSampler,
    TrainingSampler,
    embed,
    most_likely,
)


@keras.saving.register_keras_serializable(package="keras_seq")
class SampledDecoder(ConfiguredLayer):
    """Attention decoder with an embedding, an output layer and a sampler that feeds it.

        h~_t, s_t = cell(x_t, s_{t-1}, value)
        o_t       = output_layer(h~_t)
        id_t, x_{t+1} = sampler(o_t, target)

    `TrainingSampler`, `ScheduledEmbeddingSampler` and `ScheduledOutputSampler` follow a target;
    `GreedySampler` and `CategoricalSampler` generate until the end token. To train with one sampler
    and generate with another, build two decoders from the same parts, which hold the weights.

    Generation stops when every row has ended. Its random numbers are drawn before the loop. It has
    gradients on TensorFlow only, because JAX has none for a loop of unknown length. The decoder can
    be exported with every sampler.

    Shapes: B batch, T target steps (`max_steps` when generating), S source steps, D input features,
    D_v value features, D_s summary features, V vocabulary.

    Args:
        cell: An `AttentionCell`.
        sampler: One of the five samplers above.
        embedding: Layer from ids to vectors, such as `keras.layers.Embedding`. None for targets
            that are vectors, with `TrainingSampler` or `ScheduledOutputSampler`.
        output_layer: Layer from h~ to logits, such as `keras.layers.Dense`. None to return h~.
        max_steps: Positive integer, the maximum number of generated steps; for samplers that
            generate only.

    Call arguments:
        value: Float tensor `(B, S, D_v)`, encoder outputs.
        target: Integer ids `(B, T)`, the start token followed by the true tokens, padded with 0.
            Without an embedding, float vectors `(B, T, D)`. None for samplers that generate.
        value_mask: Optional bool tensor `(B, S)`, True at real steps; by default that of `value`.
        target_mask: Optional bool tensor `(B, T)` of a target of vectors; by default its mask.
        states: Optional states before the first step. Defaults to `cell.get_initial_state`.
        summary: Optional float tensor `(B, D_s)` that every step reads in addition to its input.
        training: Whether scheduled samplers sample, and `TrainingSampler` applies the dropout of
            the attention.

    Returns:
        logits: Tensor `(B, T, V)` in float32; 0 after the end of generated rows.
        ids: Int32 tensor `(B, T)`, the sampled or most likely id of each step. 0 at padding of the
            target and after the end of generated rows.
        lengths: Int32 tensor `(B,)`, the real target steps, or the generated steps including the
            end token.

    Masks: the outputs have none. The content of masked steps of `value`, even NaN, affects neither
    outputs nor gradients.

    Raises:
        ValueError: If `cell` or `sampler` has the wrong type, or `embedding`, `max_steps` or
            `target` is missing or superfluous for the sampler.

    Example:

    >>> parts = dict(
    ...     cell=AttentionCell(keras.layers.GRUCell(8), LuongAttention()),
    ...     embedding=keras.layers.Embedding(20, 4),
    ...     output_layer=keras.layers.Dense(20))
    >>> encoded = keras.ops.ones((2, 5, 6))
    >>> train = SampledDecoder(sampler=TrainingSampler(), **parts)
    >>> logits, _, _ = train(encoded, keras.ops.array([[2, 7, 8], [2, 9, 0]]))
    >>> generate = SampledDecoder(sampler=GreedySampler(start=2, end=3), max_steps=9, **parts)
    >>> _, ids, lengths = generate(encoded)
    >>> tuple(logits.shape), tuple(ids.shape), tuple(lengths.shape)
    ((2, 3, 20), (2, 9), (2,))

    Reference:
        Bengio et al., 2015, https://arxiv.org/abs/1506.03099
    """

    def __init__(
        self,
        cell: AttentionCell,
        sampler: Sampler,
        embedding: keras.layers.Layer | None = None,
        output_layer: keras.layers.Layer | None = None,
        max_steps: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.generates = isinstance(sampler, _GENERATING)
        _check_parts(cell, sampler, embedding, max_steps)
        self.cell = cell
        self.sampler: Any = sampler
        self.embedding = embedding
        self.output_layer = output_layer
        self.max_steps = max_steps
        # Runs `cell` with teacher forcing and adds no weights.
        self.teacher_forcing = AttentionDecoder(cell, dtype=self.dtype_policy)
        if hasattr(sampler, "seed"):
            self.seed_generator = keras.random.SeedGenerator(sampler.seed)

    def build(self, value_shape: Any, target_shape: Any = None, summary_shape: Any = None) -> None:
        if self.embedding is None:
            features = target_shape[-1]
        else:
            if not self.embedding.built:
                self.embedding.build((None, None))
            features = self.embedding.compute_output_shape((None, None))[-1]
        self.teacher_forcing.build((None, None, features), tuple(value_shape), summary_shape)
        self.teacher_forcing.built = True
        if self.output_layer is not None and not self.output_layer.built:
            self.output_layer.build((None, self.cell.output_size))
        if isinstance(self.sampler, ScheduledSampler):
            if self.embedding is None and self._width() != features:
                raise ValueError(
                    "`ScheduledOutputSampler` feeds the output of a step to the next step: the "
                    f"outputs of width {self._width()} must be as wide as the target's vectors, "
                    f"received {features}. Use an `output_layer` of {features} units."
                )
            self.probability = self.add_weight(
                name="probability",
                shape=(),
                initializer=keras.initializers.Constant(self.sampler.probability),
                dtype="float32",
                trainable=False,
                # Half precision would round the probability.
                autocast=False,
            )

    def call(
        self,
        value: Any,
        target: Any = None,
        value_mask: Any = None,
        target_mask: Any = None,
        states: Any = None,
        summary: Any = None,
        training: bool | None = None,
    ) -> tuple[Any, Any, Any]:
        self._check_target(target)
        if states is None:
            states = self.cell.get_initial_state(backend.shape(value)[0], value)
        states = tree.map_structure(lambda state: ops.cast(state, self.compute_dtype), states)
        if self.generates:
            return self._generate(states, self._memory(value, value_mask, summary))
        inputs = target if self.embedding is None else self.embedding(target)
        if isinstance(self.sampler, ScheduledSampler) and training:
            memory = self._memory(value, value_mask, summary)
            logits, ids = self._mix(ops.cast(inputs, self.compute_dtype), states, memory)
        else:
            hidden, _ = self.teacher_forcing(
                inputs,
                value,
                value_mask=value_mask,
                states=states,
                summary=summary,
                training=training,
            )
            logits = self._outputs(hidden)
            ids = most_likely(logits)
        if self.embedding is not None:
            target_mask = ops.not_equal(target, 0)
        if target_mask is None:
            return (
                logits,
                ids,
                ops.full(backend.shape(ids)[:1], backend.shape(ids)[1], dtype="int32"),
            )
        ids = ops.where(target_mask, ids, 0)
        return logits, ids, ops.sum(ops.cast(target_mask, "int32"), axis=1)

    def _mix(self, inputs: Any, states: Any, memory: Any) -> tuple[Any, Any]:
        """Runs scheduled sampling: each step reads the target or the previous output."""
        batch, steps, features = backend.shape(inputs)
        uniform = keras.random.uniform((batch, steps), seed=self.seed_generator)
        choice = keras.random.uniform((batch, steps), seed=self.seed_generator)
        # The first step has no previous step.
        feeds_back = ops.logical_and(choice < self.probability, ops.arange(steps) > 0)
        # The loop takes and returns a single tensor, so random numbers are joined to the inputs and
        # ids to the outputs. Half precision would change ids and round random numbers to 1.
        dtype = "float64" if self.compute_dtype == "float64" else "float32"
        joined = ops.concatenate(
            [ops.cast(part, dtype) for part in (inputs, feeds_back[..., None], uniform[..., None])],
            axis=-1,
        )
        feedback = self.sampler.feedback(self.embedding, self._width())

        def step(joined: Any, states: Any) -> Any:
            states = tree.map_structure(lambda state: ops.cast(state, self.compute_dtype), states)
            # Not with slices, because the gradient of a split is a single concatenation.
            true, feeds_back, uniform = ops.split(joined, [features, features + 1], axis=-1)
            true = ops.cast(true, self.compute_dtype)
            step_inputs = ops.where(feeds_back > 0, states["feedback"], true)
            hidden, cell_states, _ = self.cell(step_inputs, states["cell"], **memory)
            outputs = self._outputs(hidden)
            ids = self.sampler.ids(outputs, ops.squeeze(uniform, -1))
            states = {"cell": cell_states, "feedback": feedback(outputs, ids)}
            joined = ops.concatenate([outputs, ops.cast(ids, "float32")[:, None]], axis=-1)
            return tree.map_structure(lambda tensor: ops.cast(tensor, dtype), (joined, states))

        states = {"cell": states, "feedback": ops.zeros_like(inputs[:, 0])}
        joined, _ = run_steps(step, joined, states, keras.DTypePolicy(dtype))
        return ops.cast(joined[..., :-1], "float32"), ops.cast(joined[..., -1], "int32")

    def _generate(self, states: Any, memory: Any) -> tuple[Any, Any, Any]:
        """Runs steps that read the previous id until all rows have ended."""
        batch = backend.shape(memory["value"])[0]
        uniforms = ops.zeros((self.max_steps, batch))
        if isinstance(self.sampler, CategoricalSampler):
            uniforms = keras.random.uniform((self.max_steps, batch), seed=self.seed_generator)

        def condition(step: Any, loop: Any) -> Any:
            return ops.logical_and(step < self.max_steps, ops.any(loop["live"]))

        def body(step: Any, loop: Any) -> Any:
            inputs = ops.cast(embed(self.embedding, loop["token"]), self.compute_dtype)
            hidden, states, _ = self.cell(inputs, loop["states"], **memory)
            outputs = self._outputs(hidden)
            live = loop["live"]
            ids = self.sampler.ids(outputs, ops.take(uniforms, step, axis=0))
            ids = ops.where(live, ids, 0)
            outputs = ops.where(live[:, None], outputs, 0.0)
            index = ops.reshape(step, (1, 1))
            return step + 1, {
                "token": ids,
                "states": states,
                "live": ops.logical_and(live, ops.not_equal(ids, self.sampler.end)),
                "lengths": loop["lengths"] + ops.cast(live, "int32"),
                "outputs": ops.scatter_update(loop["outputs"], index, outputs[None]),
                "ids": ops.scatter_update(loop["ids"], index, ids[None]),
            }

        loop = {
            "token": ops.full((batch,), self.sampler.start, dtype="int32"),
            "states": states,
            "live": ops.ones((batch,), dtype="bool"),
            "lengths": ops.zeros((batch,), dtype="int32"),
            "outputs": ops.zeros((self.max_steps, batch, self._width()), dtype="float32"),
            "ids": ops.zeros((self.max_steps, batch), dtype="int32"),
        }
        _, loop = ops.while_loop(condition, body, (ops.zeros((), dtype="int32"), loop))
        outputs = ops.transpose(loop["outputs"], (1, 0, 2))  # (B, T, V)
        return outputs, ops.transpose(loop["ids"]), loop["lengths"]

    def _memory(self, value: Any, value_mask: Any, summary: Any) -> dict[str, Any]:
        projected = self.cell.attention.project(value, value_mask)
        return {**projected, "value_mask": value_mask, "summary": summary}

    def _outputs(self, hidden: Any) -> Any:
        """Returns float32 logits of one step or of all steps."""
        if self.output_layer is not None:
            hidden = self.output_layer(hidden)
        return ops.cast(hidden, "float32")

    def _width(self) -> int:
        if self.output_layer is None:
            return self.cell.output_size
        return self.output_layer.compute_output_shape((None, self.cell.output_size))[-1]

    def _check_target(self, target: Any) -> None:
        name = type(self.sampler).__name__
        if self.generates and target is not None:
            raise ValueError(
                f"`{name}` generates without a target: call the decoder without `target`."
            )
        if not self.generates and target is None:
            raise ValueError(
                f"`{name}` follows a target: call the decoder with `target`, received none."
            )
        rank = 2 if self.embedding is not None else 3
        if target is not None and len(target.shape) != rank:
            expected = "ids (B, T)" if rank == 2 else "vectors (B, T, D) without an `embedding`"
            raise ValueError(f"`target` must be {expected}, received shape {tuple(target.shape)}.")

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        return None


_GENERATING = (GreedySampler, CategoricalSampler)


def _check_parts(cell: Any, sampler: Any, embedding: Any, max_steps: Any) -> None:
    """Raises ValueError unless the parts of a decoder fit together."""
    if not isinstance(cell, AttentionCell):
        raise ValueError(f"`cell` must be an `AttentionCell`, received {cell!r}.")
    if not isinstance(sampler, (TrainingSampler, ScheduledSampler, *_GENERATING)):
        raise ValueError(
            "`sampler` must be a TrainingSampler, ScheduledEmbeddingSampler, "
            f"ScheduledOutputSampler, GreedySampler or CategoricalSampler, received {sampler!r}."
        )
    name = type(sampler).__name__
    generates = isinstance(sampler, _GENERATING)
    if embedding is None and (generates or isinstance(sampler, ScheduledEmbeddingSampler)):
        raise ValueError(f"`{name}` produces ids: pass an `embedding` to the decoder.")
    if generates and (not isinstance(max_steps, int) or max_steps < 1):
        raise ValueError(
            f"`{name}` generates until its end token: `max_steps` must be a positive integer, "
            f"received {max_steps!r}."
        )
    if max_steps is not None and not generates:
        raise ValueError(
            f"`{name}` takes as many steps as the target has: omit `max_steps`, received "
            f"{max_steps!r}."
        )
