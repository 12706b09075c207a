"""The loop of a search: steps of a decoder over the rows of a batch."""

import contextlib
import itertools

import keras
from keras import ops

from keras_seq.backend import gather

# Shape letters: B batch, R rows still searched, S source steps, K beam, C capacity, L steps.

# Steps between two looks at which rows are done, by which the state grows, too. Both copy the
# state; without them each step is slower than need be.
ROUND = 8
# Where shapes are static, a state of another length is another loop to compile: so there are few.
_FIRST_STAGE, _STAGE_GROWTH = 64, 4


def decode_loop(model, source, beam_size, limit, *, begin, step, results, rows, attending=False):
    """Takes steps until every row is done.

    Most targets end long before their limit, and a step costs as much as its
    state is long and as there are rows: so the state grows, and rows that are
    done leave. What comes out is the same, whenever they do. Where a shape is
    static, as on JAX, all rows stay, and the state grows a few times at most.

    Args:
        model: A model of the search contract. All tensors of its memory and its
            states begin with the dimension of the batch. Its `step_scope`, if it has one,
            is a context that computes once what each step within would.
        source: From `read_source`.
        beam_size: Integer K.
        limit: L, most steps, an integer or a scalar tensor; every row is done by then.
        begin: Function of a capacity C to what the search knows before the first
            step, a dict of tensors `(B, ...)`: among them `token` `(B, K)`, the last
            of each hypothesis; `done` `(B,)`; and `history`, a structure of tensors
            `(B, ..., C)` with a place for each step, that grow with zeros.
        step: Function of the number of steps taken, what the model's step gave, the
            dict so far and that of `rows`, to the next dict, with the state
            reordered as `state`. A row that is done has to stay as it is.
        results: Function of the dict and that of `rows` to a structure of tensors
            `(B, ...)` whose shapes do not depend on C.
        rows: Dict of tensors `(B, ...)` that do not change.
        attending: Whether a step gives its attention, too.

    Returns:
        The results of all rows.
    """
    decode = model.attending_step if attending else model.decoder_step
    memory = source.memory
    grows = not source.has_static_shape
    stages = [] if grows else _stages(limit)
    capacity = ops.minimum(limit, ROUND) if grows else stages[0]
    loop = {**begin(capacity), "state": model.initial_state(memory, beam_size, capacity)}
    rows = {**rows, "memory": memory}

    def advance(taken, until, loop, rows):
        def goes_on(taken, loop):
            return ops.logical_and(taken < until, ops.logical_not(ops.all(loop["done"])))

        def body(taken, loop):
            out = decode(
                {
                    "token": loop["token"],
                    "position": taken,
                    "state": loop["state"],
                    "memory": rows["memory"],
                },
                training=False,
            )
            return taken + 1, step(taken, out, loop, rows)

        return ops.while_loop(goes_on, body, (taken, loop))

    if not grows:
        taken, loop = advance(ops.zeros((), dtype="int32"), stages[0], loop, rows)
        for before, until in itertools.pairwise(stages):
            loop = _extended(model, loop, until - before)
            taken, loop = advance(taken, until, loop, rows)
        return results(loop, rows)

    with getattr(model, "step_scope", contextlib.nullcontext)():
        return _decode_in_rounds(model, source, limit, loop, rows, advance, results)


def _decode_in_rounds(model, source, limit, loop, rows, advance, results):
    """The steps in rounds, between which the state grows and rows that are done leave."""
    numbers = ops.arange(ops.shape(source.mask)[0], dtype="int32")
    # What has a known number of rows must forget it, for rows will leave.
    rows = keras.tree.map_structure(
        lambda tensor: tensor if tensor.shape[0] is None else gather(tensor, numbers),
        rows,
    )

    def rows_left(taken, numbers, *_):
        return ops.logical_and(taken < limit, ops.shape(numbers)[0] > 0)

    def round_of_steps(taken, numbers, loop, rows, whole):
        taken, loop = advance(taken, ops.minimum(taken + ROUND, limit), loop, rows)
        # Those of rows that go on are written again later.
        whole = keras.tree.map_structure(
            lambda all_rows, some: ops.scatter_update(all_rows, numbers[:, None], some),
            whole,
            results(loop, rows),
        )
        (left,) = ops.nonzero(ops.logical_not(loop["done"]))
        numbers, loop, rows = keras.tree.map_structure(
            lambda tensor: gather(tensor, left), (numbers, loop, rows)
        )
        loop = _extended(model, loop, ROUND)
        return taken, numbers, loop, rows, whole

    none = ops.zeros((), dtype="int32")
    *_, whole = ops.while_loop(
        rows_left, round_of_steps, (none, numbers, loop, rows, results(loop, rows))
    )
    return whole


def to_length(history, length):
    """A history of another length with a place for each of L steps, `(B, ..., L)`."""
    # The last round may have room for more steps than the limit allows.
    shape = ops.shape(history)
    if isinstance(length, int) and isinstance(shape[-1], int):
        more = max(length - shape[-1], 0)
    else:
        more = ops.maximum(length - shape[-1], 0)
    return ops.pad(history, [[0, 0]] * (len(shape) - 1) + [[0, more]])[..., :length]


def _stages(limit):
    """The steps after which the state grows, and the last of all.

    >>> _stages(100), _stages(200), _stages(1000)
    ([100], [64, 200], [64, 256, 1000])
    """
    stages, until = [], _FIRST_STAGE
    # Twice as long is not worth another loop.
    while isinstance(limit, int) and limit > 2 * until:
        stages.append(until)
        until *= _STAGE_GROWTH
    return [*stages, limit]


def _extended(model, loop, length):
    """What a search knows, with places for so many more steps."""

    def longer(history):
        return ops.pad(history, [[0, 0]] * (len(history.shape) - 1) + [[0, length]])

    return {
        **loop,
        "history": keras.tree.map_structure(longer, loop["history"]),
        "state": model.grow_state(loop["state"], length),
    }
