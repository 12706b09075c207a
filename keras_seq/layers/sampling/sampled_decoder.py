"""A decoder of single parts, fed by a sampler."""

from typing import Any

import keras
from keras import ops, tree

from keras_seq.layers.attention.attention_cell import AttentionCell
from keras_seq.layers.attention.attention_decoder import AttentionDecoder
from keras_seq.layers.internal.step_loop import run_steps
from keras_seq.layers.sampling.samplers import (
    CategoricalSampler,
    GreedySampler,
    ScheduledEmbeddingSampler,
    ScheduledOutputSampler,
    TrainingSampler,
    embed,
    likeliest,
)

# Shape letters: B batch, T target steps (of a free sampler `max_steps`), S source steps,
# D input features, D_v value features, D_s summary features, U units, V vocabulary.


@keras.saving.register_keras_serializable(package="keras_seq")
class SampledDecoder(keras.layers.Layer):
    """An attention cell with an embedding before it and logits behind it, fed by a sampler.

        h~_t, s_t = cell(x_t, s_{t-1}, value)
        o_t       = output_layer(h~_t)
        id_t, x_{t+1} = what the sampler makes of o_t and the target

    With `TrainingSampler`, `ScheduledEmbeddingSampler` or
    `ScheduledOutputSampler` a target leads; with `GreedySampler` or
    `CategoricalSampler` the decoder writes until its end token. To train
    with one and write with another, make two decoders of the same parts: the
    weights are the parts'.

    Shapes: B batch, T target steps, of a sampler that writes `max_steps`, S
    source steps, D input features, D_v value features, D_s summary features,
    V vocabulary.

    Args:
        cell: An `AttentionCell`.
        sampler: One of the five above.
        embedding: A layer from ids to vectors, such as
            `keras.layers.Embedding`. None for targets that are vectors, with
            `TrainingSampler` or `ScheduledOutputSampler`.
        output_layer: A layer from h~ to logits, such as `keras.layers.Dense`.
            None where h~ is what is wanted.
        max_steps: Positive integer, most steps of a sampler that writes, which
            alone needs it.

    Call arguments:
        value: Float tensor `(B, S, D_v)`, encoder outputs.
        target: Integer ids `(B, T)`, the start token and then the true words,
            0 where padded; without an embedding float vectors `(B, T, D)`.
            Not for a sampler that writes.
        value_mask: Optional bool tensor `(B, S)`, True where the source is
            real. Filled in by Keras from `value` when not given.
        states: Optional states before the first step, as the cell takes them.
            Zeros when not given.
        summary: Optional float tensor `(B, D_s)`, which every step reads
            besides its input.
        training: Whether scheduled samplers sample, and attention's dropout is
            applied by `TrainingSampler`.

    Returns:
        logits: Tensor `(B, T, V)` in float32, whatever the dtype policy; of a
            sampler that writes 0 after the end.
        ids: Int32 tensor `(B, T)`: what the sampler drew or would have said at
            each step. 0 where the target is padding, and after the end.
        lengths: Int32 tensor `(B,)`: real steps of the target, or steps
            written, the end token included.

    A sampler that writes stops when every row has ended. It has gradients on
    TensorFlow only: JAX has none of a loop whose number of steps is unknown.
    Its random numbers are drawn before the loop. All of it can be exported.

    Masks: `value_mask` ends here; what a masked step of `value` holds, NaN
    included, reaches neither the outputs nor the gradients.

    Raises:
        ValueError: If `cell` or `sampler` is another object, what the sampler
            needs is missing (`embedding`, `max_steps`, `target`), or it is
            given a `target` or `max_steps` it has no use for.

    Example:

    >>> parts = dict(
    ...     cell=AttentionCell(keras.layers.GRUCell(8), LuongAttention()),
    ...     embedding=keras.layers.Embedding(20, 4),
    ...     output_layer=keras.layers.Dense(20))
    >>> encoded = keras.ops.ones((2, 5, 6))
    >>> teach = SampledDecoder(sampler=TrainingSampler(), **parts)
    >>> logits, _, _ = teach(encoded, keras.ops.array([[2, 7, 8], [2, 9, 0]]))
    >>> write = SampledDecoder(sampler=GreedySampler(start=2, end=3), max_steps=9, **parts)
    >>> _, ids, lengths = write(encoded)
    >>> tuple(logits.shape), tuple(ids.shape), tuple(lengths.shape)
    ((2, 3, 20), (2, 9), (2,))

    Reference:
        Bengio et al., "Scheduled Sampling for Sequence Prediction with
        Recurrent Neural Networks", 2015, https://arxiv.org/abs/1506.03099
    """

    def __init__(self, cell, sampler, embedding=None, output_layer=None, max_steps=None, **kwargs):
        super().__init__(**kwargs)
        if not isinstance(cell, AttentionCell):
            raise ValueError(f"`cell` must be an `AttentionCell`, received {cell!r}.")
        if not isinstance(sampler, (TrainingSampler, *_SCHEDULED, *_WRITING)):
            raise ValueError(
                "`sampler` must be a TrainingSampler, ScheduledEmbeddingSampler, "
                "ScheduledOutputSampler, GreedySampler or CategoricalSampler, "
                f"received {sampler!r}."
            )
        self.writes = isinstance(sampler, _WRITING)
        if embedding is None and (self.writes or isinstance(sampler, ScheduledEmbeddingSampler)):
            raise ValueError(
                f"`{type(sampler).__name__}` reads words: give an `embedding` to the decoder."
            )
        if self.writes and (not isinstance(max_steps, int) or max_steps < 1):
            raise ValueError(
                f"`{type(sampler).__name__}` writes until its end token: `max_steps` must be a "
                f"positive integer, received {max_steps!r}."
            )
        if max_steps is not None and not self.writes:
            raise ValueError(
                f"`{type(sampler).__name__}` takes as many steps as the target has: leave out "
                f"`max_steps`, received {max_steps!r}."
            )
        self.cell = cell
        self.sampler: Any = sampler
        self.embedding = embedding
        self.output_layer = output_layer
        self.max_steps = max_steps
        self.supports_masking = True
        # The loop of teacher forcing; it has no weights of its own.
        self.teacher = AttentionDecoder(cell, dtype=self.dtype_policy)
        if hasattr(sampler, "seed"):
            self.seed_generator = keras.random.SeedGenerator(sampler.seed)

    def build(self, value_shape, target_shape=None, summary_shape=None):
        if self.embedding is None:
            features = target_shape[-1]
        else:
            if not self.embedding.built:
                self.embedding.build((None, None))
            features = self.embedding.compute_output_shape((None, None))[-1]
        self.teacher.build((None, None, features), tuple(value_shape), summary_shape)
        self.teacher.built = True
        if self.output_layer is not None and not self.output_layer.built:
            self.output_layer.build((None, self.cell.output_size))
        if isinstance(self.sampler, _SCHEDULED):
            if self.embedding is None and self._width() != features:
                raise ValueError(
                    f"`ScheduledOutputSampler` feeds what a step gives to the next: the decoder's "
                    f"outputs of width {self._width()} must be as wide as the target's vectors, "
                    f"received {features}. An `output_layer` of {features} units does it."
                )
            self.probability = self.add_weight(
                name="probability",
                shape=(),
                initializer=keras.initializers.Constant(self.sampler.probability),
                dtype="float32",
                trainable=False,
                # Compared with numbers that half precision would round.
                autocast=False,
            )

    def call(
        self,
        value,
        target=None,
        value_mask=None,
        target_mask=None,
        states=None,
        summary=None,
        training=None,
    ):
        self._check(target)
        if states is None:
            states = self.cell.get_initial_state(ops.shape(value)[0], value)
        states = tree.map_structure(lambda state: ops.cast(state, self.compute_dtype), states)
        if self.writes:
            return self._write(states, self._memory(value, value_mask, summary))
        inputs = target if self.embedding is None else self.embedding(target)
        if isinstance(self.sampler, _SCHEDULED) and training:
            memory = self._memory(value, value_mask, summary)
            logits, ids = self._mix(ops.cast(inputs, self.compute_dtype), states, memory)
        else:
            hidden, _ = self.teacher(
                inputs,
                value,
                value_mask=value_mask,
                states=states,
                summary=summary,
                training=training,
            )
            logits = self._outputs(hidden)
            ids = likeliest(logits)
        if self.embedding is not None:
            target_mask = ops.not_equal(target, 0)
        if target_mask is None:
            return logits, ids, ops.full(ops.shape(ids)[:1], ops.shape(ids)[1], dtype="int32")
        ids = ops.where(target_mask, ids, 0)
        return logits, ids, ops.sum(ops.cast(target_mask, "int32"), axis=1)

    def _mix(self, inputs, states, memory):
        """Steps that read the target or, where it is drawn so, what the step before gave."""
        batch, steps, features = ops.shape(inputs)
        number = keras.random.uniform((batch, steps), seed=self.seed_generator)
        chance = keras.random.uniform((batch, steps), seed=self.seed_generator)
        # The first step has none before it.
        own = ops.logical_and(chance < self.probability, ops.arange(steps) > 0)
        # The loop slices one tensor by time and gives one, so what is drawn rides on its inputs
        # and words on its outputs. All in float32: in half precision a number may come to 1, and a
        # word to another.
        wide = "float64" if self.compute_dtype == "float64" else "float32"
        joined = ops.concatenate(
            [ops.cast(part, wide) for part in (inputs, own[..., None], number[..., None])], axis=-1
        )
        feedback = self.sampler.feedback(self.embedding, self._width())

        def step(joined, states):
            states = tree.map_structure(lambda state: ops.cast(state, self.compute_dtype), states)
            # Not by slices: the gradient of a split is one concatenation.
            read, own, number = ops.split(joined, [features, features + 1], axis=-1)
            read = ops.where(own > 0, states["fed"], ops.cast(read, self.compute_dtype))
            hidden, cell_states, _ = self.cell(read, states["cell"], **memory)
            outputs = self._outputs(hidden)
            ids = self.sampler.ids(outputs, ops.squeeze(number, -1))
            fed = feedback(outputs, ids)
            given = ops.concatenate([outputs, ops.cast(ids, "float32")[:, None]], axis=-1)
            return tree.map_structure(
                lambda tensor: ops.cast(tensor, wide), (given, {"cell": cell_states, "fed": fed})
            )

        states = {"cell": states, "fed": ops.zeros_like(inputs[:, 0])}
        given, _ = run_steps(step, joined, states, keras.DTypePolicy(wide))
        return ops.cast(given[..., :-1], "float32"), ops.cast(given[..., -1], "int32")

    def _write(self, states, memory):
        """Steps that read what the step before said, until all rows have said the end."""
        batch = ops.shape(memory["value"])[0]
        numbers = ops.zeros((self.max_steps, batch))
        if isinstance(self.sampler, CategoricalSampler):
            numbers = keras.random.uniform((self.max_steps, batch), seed=self.seed_generator)

        def goes_on(taken, loop):
            return ops.logical_and(taken < self.max_steps, ops.any(loop["goes_on"]))

        def body(taken, loop):
            read = ops.cast(embed(self.embedding, loop["token"]), self.compute_dtype)
            hidden, states, _ = self.cell(read, loop["states"], **memory)
            outputs = self._outputs(hidden)
            live = loop["goes_on"]
            ids = self.sampler.ids(outputs, ops.take(numbers, taken, axis=0))
            ids = ops.where(live, ids, 0)
            outputs = ops.where(live[:, None], outputs, 0.0)
            place = ops.reshape(taken, (1, 1))
            return taken + 1, {
                "token": ids,
                "states": states,
                "goes_on": ops.logical_and(live, ops.not_equal(ids, self.sampler.end)),
                "lengths": loop["lengths"] + ops.cast(live, "int32"),
                "outputs": ops.scatter_update(loop["outputs"], place, outputs[None]),
                "ids": ops.scatter_update(loop["ids"], place, ids[None]),
            }

        loop = {
            "token": ops.full((batch,), self.sampler.start, dtype="int32"),
            "states": states,
            "goes_on": ops.ones((batch,), dtype="bool"),
            "lengths": ops.zeros((batch,), dtype="int32"),
            "outputs": ops.zeros((self.max_steps, batch, self._width()), dtype="float32"),
            "ids": ops.zeros((self.max_steps, batch), dtype="int32"),
        }
        _, loop = ops.while_loop(goes_on, body, (ops.zeros((), dtype="int32"), loop))
        outputs = ops.transpose(loop["outputs"], (1, 0, 2))  # (B, T, V)
        return outputs, ops.transpose(loop["ids"]), loop["lengths"]

    def _memory(self, value, value_mask, summary):
        projected = self.cell.attention.project(value, value_mask)
        return {**projected, "value_mask": value_mask, "summary": summary}

    def _outputs(self, hidden):
        """Logits in float32, of one step or all."""
        if self.output_layer is not None:
            hidden = self.output_layer(hidden)
        return ops.cast(hidden, "float32")

    def _width(self):
        if self.output_layer is None:
            return self.cell.output_size
        return self.output_layer.compute_output_shape((None, self.cell.output_size))[-1]

    def _check(self, target):
        name = type(self.sampler).__name__
        if self.writes != (target is None):
            raise ValueError(
                f"`{name}` writes by itself: call the decoder without `target`."
                if self.writes
                else f"`{name}` follows a target: call the decoder with `target`, received none."
            )
        rank = 2 if self.embedding is not None else 3
        if target is not None and len(target.shape) != rank:
            what = "ids (B, T)" if rank == 2 else "vectors (B, T, D), for there is no `embedding`"
            raise ValueError(f"`target` must be {what}, received shape {tuple(target.shape)}.")

    def compute_mask(self, value, *args, **kwargs):
        return None

    def get_config(self):
        return {
            **super().get_config(),
            **{name: keras.saving.serialize_keras_object(getattr(self, name)) for name in _PARTS},
            "max_steps": self.max_steps,
        }

    @classmethod
    def from_config(cls, config):
        parts = {name: keras.saving.deserialize_keras_object(config[name]) for name in _PARTS}
        return cls(**{**config, **parts})


_SCHEDULED = (ScheduledEmbeddingSampler, ScheduledOutputSampler)
_WRITING = (GreedySampler, CategoricalSampler)
_PARTS = ("cell", "sampler", "embedding", "output_layer")
