"""The steps of a decoder, whose state grows as they are taken."""

from keras import ops

# Shape letters: B batch, K beam, L steps.

# Steps by which the state grows. Growing copies it, a longer state makes each step slower.
GROWTH = 8


class Steps:
    """Encodes sources and takes steps of the decoder over them.

    Most targets end long before their limit, and a step costs as much as its
    state is long: so the state grows. Where shapes are static, as on JAX, it
    has one length from the start.

    Args:
        model: A model of the search contract.
        source: Int32 tensor `(B, S)`.
        beam_size: Integer K.
        limit: Most steps, an integer or a scalar tensor.
        attending: Whether a step gives its attention, too.

    Attributes:
        first_state: The state before the first step.
        capacity: The steps that it holds.
    """

    def __init__(self, model, source, beam_size, limit, *, attending=False):
        self._model = model
        self._step = model.attending_step if attending else model.decoder_step
        self._memory = model.encoder(source, training=False)
        self._grows = not isinstance(ops.shape(source)[1], int)
        self.capacity = ops.minimum(limit, GROWTH) if self._grows else limit
        self.first_state = model.initial_state(self._memory, beam_size, self.capacity)

    def take(self, tokens, step, state, capacity):
        """Takes one.

        Args:
            tokens: Int32 tensor `(B, K)`, the last of each hypothesis.
            step: Scalar int tensor, how many were taken.
            state: From the step before.
            capacity: The steps that it holds.

        Returns:
            What the model's step gives, and the capacity of its `state`.
        """
        if self._grows:
            full = step >= capacity
            state = ops.cond(
                full, lambda: self._model.extended_state(state, GROWTH), lambda: dict(state)
            )
            capacity = ops.where(full, capacity + GROWTH, capacity)
        out = self._step(
            {"token": tokens, "position": step, "state": state, "memory": self._memory},
            training=False,
        )
        return out, capacity
