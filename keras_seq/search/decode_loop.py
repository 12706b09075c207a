"""The decoding loop: decoder steps over the rows of a batch until all rows are done."""

import contextlib
import itertools
from collections.abc import Callable
from typing import Any, Protocol

import keras
from keras import ops

from keras_seq import backend
from keras_seq.backend import call_model, gather
from keras_seq.search.sources import Source
from keras_seq.text import InputError

# Shape letters: B batch, S source steps, K hypotheses, C capacity, L steps.

# Number of steps after which the state grows and rows that are done leave the batch. Both
# operations copy the state, so they would be slow at every step.
ROUND = 8
# With static shapes, each state length is compiled separately, so use few lengths: each is four
# times the last.
_FIRST_STAGE, _STAGE_GROWTH = 64, 4


class Search(Protocol):
    """A search algorithm for `decode_loop`.

    Attributes:
        num_hypotheses: Integer K, the number of hypotheses per row.
        needs_attention: True if `step` reads the attention of the decoder step.
        rows: Dict of tensors `(B, ...)`, constant through the search.
    """

    num_hypotheses: int
    needs_attention: bool
    rows: dict[str, Any]

    def init_state(self, capacity: Any) -> dict[str, Any]:
        """Returns the state before the first step, a dict of tensors `(B, ...)`.

        Among them are `token` `(B, K)`, the last token of each hypothesis; `done` `(B,)`; and
        `history`, a structure of tensors `(B, ..., C)` with an entry for each step, which
        `decode_loop` extends with zeros. `decode_loop` adds `decoder_state`.
        """

    def step(
        self, num_steps: Any, outputs: dict[str, Any], state: dict[str, Any], rows: dict[str, Any]
    ) -> dict[str, Any]:
        """Returns the state after one more step. A row that is done must not change.

        `num_steps` is the number of previous steps. `outputs` of the decoder step are `logits`,
        `state` and maybe `attention`. `rows` is `self.rows` for the rows still in the batch.
        """

    def results(self, state: dict[str, Any], rows: dict[str, Any]) -> Any:
        """Returns the results as tensors `(B, ...)`. Their shapes must not depend on C."""


def decode_loop(model: Any, source: Source, search: Search) -> Any:
    """Runs a search until every row is done, and returns the results of all rows.

    Most targets end long before the length limit, and the cost of a step is proportional to the
    length of the state and to the number of rows. Therefore the state grows, and rows that are done
    leave the batch; neither changes the results. With static shapes, as on JAX, all rows stay, and
    the state grows a few times at most.

    The first axis of all tensors of the model's memory and states is the batch.
    `model.cached_output_kernel`, if present, is a context in which all steps share one transposed
    output kernel. Every row must be done after `source.limits.steps` steps. Raises InputError if
    the search reads attention that the model does not return.
    """
    if search.needs_attention:
        require_attention(model)
    decode = model.decoder_step_with_attention if search.needs_attention else model.decoder_step
    limit, memory = source.limits.steps, source.memory
    is_static = source.has_static_shape
    stages = _stages(limit) if is_static else []
    capacity = stages[0] if is_static else ops.minimum(limit, ROUND)
    decoder_state = model.initial_state(memory, search.num_hypotheses, capacity)
    state = {**search.init_state(capacity), "decoder_state": decoder_state}
    rows = {**search.rows, "memory": memory}

    def advance(num_steps: Any, until: Any, state: Any, rows: Any) -> Any:
        def condition(num_steps: Any, state: Any) -> Any:
            return ops.logical_and(num_steps < until, ops.logical_not(ops.all(state["done"])))

        def body(num_steps: Any, state: Any) -> Any:
            inputs = {
                "token": state["token"],
                "position": num_steps,
                "state": state["decoder_state"],
                "memory": rows["memory"],
            }
            outputs = call_model(decode, inputs, training=False)
            return num_steps + 1, search.step(num_steps, outputs, state, rows)

        return ops.while_loop(condition, body, (num_steps, state))

    if is_static:
        num_steps, state = advance(ops.zeros((), dtype="int32"), stages[0], state, rows)
        for before, until in itertools.pairwise(stages):
            state = _extended(model, state, until - before)
            num_steps, state = advance(num_steps, until, state, rows)
        return search.results(state, rows)

    with getattr(model, "cached_output_kernel", contextlib.nullcontext)():
        return _decode_in_rounds(model, source, state, rows, advance, search.results)


def require_attention(model: Any) -> None:
    """Raises InputError if a coverage penalty cannot be computed with this model."""
    if not hasattr(model, "decoder_step_with_attention"):
        raise InputError(
            "coverage_penalty: it needs attention to the source, but a "
            f"{type(model).__name__} has no `decoder_step_with_attention`: set it to 0"
        )


def _decode_in_rounds(
    model: Any,
    source: Source,
    state: Any,
    rows: Any,
    advance: Callable[..., Any],
    results: Callable[..., Any],
) -> Any:
    """Decodes in rounds, between which the state grows and rows that are done leave."""
    limit = source.limits.steps

    def condition(taken: Any, numbers: Any, *_: Any) -> Any:
        return ops.logical_and(taken < limit, backend.shape(numbers)[0] > 0)

    def body(taken: Any, numbers: Any, state: Any, rows: Any, all_results: Any) -> Any:
        taken, state = advance(taken, ops.minimum(taken + ROUND, limit), state, rows)
        # The next round overwrites the results of rows that are not done.
        all_results = keras.tree.map_structure(
            lambda all_rows, some: ops.scatter_update(all_rows, numbers[:, None], some),
            all_results,
            results(state, rows),
        )
        (remaining,) = ops.nonzero(ops.logical_not(state["done"]))
        numbers, state, rows = keras.tree.map_structure(
            lambda tensor: gather(tensor, remaining), (numbers, state, rows)
        )
        return taken, numbers, _extended(model, state, ROUND), rows, all_results

    numbers = ops.arange(backend.shape(source.mask)[0], dtype="int32")
    # TensorFlow loops reject a static number of rows that shrinks. `gather` makes it dynamic.
    rows = keras.tree.map_structure(
        lambda tensor: tensor if tensor.shape[0] is None else gather(tensor, numbers), rows
    )
    start = ops.zeros((), dtype="int32")
    *_, all_results = ops.while_loop(
        condition, body, (start, numbers, state, rows, results(state, rows))
    )
    return all_results


def to_length(history: Any, length: Any) -> Any:
    """Pads or truncates the last axis of a history to `length`."""
    # After the last round, the capacity may be larger than the limit.
    shape = backend.shape(history)
    if isinstance(length, int) and isinstance(shape[-1], int):
        missing = max(length - shape[-1], 0)
    else:
        missing = ops.maximum(length - shape[-1], 0)
    return _padded(history, missing)[..., :length]


def _stages(limit: Any) -> list[Any]:
    """Returns the state lengths to compile loops for, in ascending order, up to the limit.

    >>> _stages(100), _stages(200), _stages(1000)
    ([100], [64, 200], [64, 256, 1000])
    """
    stages, until = [], _FIRST_STAGE
    # Compiling another loop is only worthwhile if the state more than doubles.
    while isinstance(limit, int) and limit > 2 * until:
        stages.append(until)
        until *= _STAGE_GROWTH
    return [*stages, limit]


def _extended(model: Any, state: Any, length: Any) -> Any:
    """Returns the state with room for `length` more steps."""
    return {
        **state,
        "history": keras.tree.map_structure(lambda x: _padded(x, length), state["history"]),
        "decoder_state": model.grow_state(state["decoder_state"], length),
    }


def _padded(history: Any, length: Any) -> Any:
    return ops.pad(history, [[0, 0]] * (len(history.shape) - 1) + [[0, length]])
