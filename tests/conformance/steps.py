"""The step form of each row, run over a whole sequence: what search does with it.

Where a step takes several hypotheses there are two: the row's own sequence, and
the same with the batch reversed. They swap slots after every step, so the state has to
follow its hypothesis; the outputs of the first are returned.
"""

import keras
from keras import ops

from keras_seq.layers import beam_cache_mask, update_ancestors

HYPOTHESES = 2


def two_hypotheses(array):
    """`(B, T, ...)` -> `(B, 2, T, ...)`."""
    return ops.stack([array, ops.flip(array, axis=0)], axis=1)


def slots(step):
    """Which hypothesis sits in each slot at this step."""
    return [0, 1] if step % 2 == 0 else [1, 0]


def swap(tensor):
    """Follows the hypotheses to their next slots, as a search gathers by parent."""
    return ops.take(tensor, ops.array([1, 0]), axis=1)


def position(layer, arrays):
    return ops.stack(
        [
            layer.step(arrays["inputs"][:, step : step + 1], ops.array(step, dtype="int32"))[:, 0]
            for step in range(arrays["inputs"].shape[1])
        ],
        axis=1,
    )


def cross_attention(layer, arrays):
    """The beam stands in the place of the query's steps."""
    memory = layer.project(arrays["value"], arrays["value_mask"])
    attended = [
        layer.attend(arrays["query"][:, step : step + 1], **memory, value_mask=arrays["value_mask"])
        for step in range(arrays["query"].shape[1])
    ]
    return ops.concatenate(attended, axis=1)


def attention(layer, arrays):
    """As cross-attention, for the layers that say what `project` gives by name."""
    memory = layer.project(arrays["value"], arrays["value_mask"])
    attended = [
        layer.attend(arrays["query"][:, step : step + 1], **memory, value_mask=arrays["value_mask"])
        for step in range(arrays["query"].shape[1])
    ]
    return ops.concatenate([context for context, _ in attended], axis=1)


def attention_with_state(layer, arrays):
    """As attention, for the layers that go from one step to the next."""
    memory = layer.project(arrays["value"], arrays["value_mask"])
    state = ops.expand_dims(layer.initial_state(arrays["value"]), 1)
    contexts = []
    for step in range(arrays["query"].shape[1]):
        query = arrays["query"][:, step : step + 1]
        context, _, state = layer.attend(
            query, **memory, state=state, value_mask=arrays["value_mask"]
        )
        contexts.append(context)
    return ops.concatenate(contexts, axis=1)


def cell_with_beam(call, layer, arrays):
    """Two hypotheses of each source, of which the first is the row's own."""
    memory = {"value", "value_mask", "summary"}
    shared = {name: arrays[name] for name in memory & set(arrays)}
    of_hypotheses = {
        name: ops.stack([array, ops.flip(array, axis=0)], axis=1)
        for name, array in arrays.items()
        if name not in shared
    }
    output, _, _ = call(layer, {**shared, **of_hypotheses})
    return output[:, 0]


def attention_decoder(layer, arrays):
    """The cell step by step, with what depends on the source computed once."""
    cell = layer.cell
    memory = cell.attention.project(arrays["value"], arrays["value_mask"])
    states = cell.get_initial_state(arrays["inputs"].shape[0], arrays["value"])
    outputs = []
    for step in range(arrays["inputs"].shape[1]):
        output, states, _ = cell(
            arrays["inputs"][:, step],
            states,
            **memory,
            value_mask=arrays["value_mask"],
            summary=arrays.get("summary"),
        )
        outputs.append(output)
    return ops.stack(outputs, axis=1)


def self_attention(layer, arrays):
    return cached(
        arrays["inputs"],
        layer,
        lambda inputs, at, bias, cache: layer.step(inputs, at, bias, cache),
    )


def causal_block(layer, arrays):
    return cached(arrays["inputs"], layer.attention, layer.step)


def decoder_block(layer, arrays):
    # The memory is shared by the hypotheses of a row, so both are the row's own sequence here.
    memory = layer.project(arrays["memory"], arrays["memory_mask"])
    return cached(
        arrays["inputs"],
        layer.self_attention,
        lambda inputs, at, bias, cache: layer.step(
            inputs, at, bias, cache, memory, arrays["memory_mask"]
        ),
    )


def cached(inputs, attention, run_step):
    batch, length, _ = inputs.shape
    hypotheses = two_hypotheses(inputs)
    cache = {
        name: ops.zeros((batch, attention.num_heads, length, HYPOTHESES, size), inputs.dtype)
        for name, size in zip(("key", "value"), attention.head_sizes, strict=True)
    }
    past = ops.zeros((batch, HYPOTHESES, length, HYPOTHESES), dtype="bool")
    outputs = []
    for step in range(length):
        at = ops.array(step, dtype="int32")
        if step:
            past = swap(past)
        past = update_ancestors(past, at)
        current = ops.take(hypotheses[:, :, step], ops.array(slots(step)), axis=1)
        output, cache = run_step(current, at, beam_cache_mask(past), cache)
        outputs.append(output[:, slots(step).index(0)])
    return ops.stack(outputs, axis=1)


def model(model, arrays):
    """Any model with an encoder and a decoder step."""
    memory = model.encoder(arrays["source"])
    length = arrays["target"].shape[1]
    # Room for one step at first, then for two more whenever that is used up.
    state = model.initial_state(memory, HYPOTHESES, 1)
    hypotheses = two_hypotheses(arrays["target"])
    logits = []
    for step in range(length):
        if step % 2:
            state = model.grow_state(state, 2)
        if step:
            state = {**state, "beam": keras.tree.map_structure(swap, state["beam"])}
        result = model.decoder_step(
            {
                "token": ops.take(hypotheses[:, :, step], ops.array(slots(step)), axis=1),
                "position": ops.array(step, dtype="int32"),
                "state": state,
                "memory": memory,
            }
        )
        state = result["state"]
        logits.append(result["logits"][:, slots(step).index(0)])
    return ops.stack(logits, axis=1)
