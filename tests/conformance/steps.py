"""Runs the step form of each row over a whole sequence, as a search does.

Where a step takes several hypotheses there are two: the row's own sequence, and
the same with the batch reversed. They swap slots after every step, so the state has to
follow its hypothesis; the outputs of the first are returned.
"""

import keras
from keras import ops

from keras_seq.backend import call_model
from keras_seq.layers import beam_cache_mask, update_ancestors

HYPOTHESES = 2


def two_hypotheses(array):
    """`(B, T, ...)` -> `(B, 2, T, ...)`."""
    return ops.stack([array, ops.flip(array, axis=0)], axis=1)


def slots(step):
    """Returns the hypothesis in each beam slot at a step."""
    return [0, 1] if step % 2 == 0 else [1, 0]


def swap(tensor):
    """Moves the hypotheses to their next slots, as a search gathers by parent."""
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
    """Uses the axis of query steps for the beam."""
    memory, mask = layer.project(arrays["value"], arrays["value_mask"]), arrays["value_mask"]
    attended = [
        layer.attend(arrays["query"][:, step : step + 1], **memory, value_mask=mask, position=step)
        for step in range(arrays["query"].shape[1])
    ]
    return ops.concatenate(attended, axis=1)


def attention(layer, arrays):
    """Like `cross_attention`, for layers whose `project` returns a dict."""
    memory = layer.project(arrays["value"], arrays["value_mask"])
    attended = [
        layer.attend(arrays["query"][:, step : step + 1], **memory, value_mask=arrays["value_mask"])
        for step in range(arrays["query"].shape[1])
    ]
    return ops.concatenate([context for context, _ in attended], axis=1)


def attention_with_state(layer, arrays):
    """Like `attention`, for layers with a state."""
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
    """Runs two hypotheses per source. The first is the sequence of the row."""
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
    """Runs the cell step by step, and computes once what depends only on the source."""
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
    # Both hypotheses are the sequence of the row, because they share its memory.
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
    """Runs a model that has an encoder and a decoder step."""
    memory = model.encoder(arrays["source"])
    length = arrays["target"].shape[1]
    # The state has room for one step at first, and grows by two steps when it is full.
    state = model.initial_state(memory, HYPOTHESES, 1)
    hypotheses = two_hypotheses(arrays["target"])
    logits = []
    for step in range(length):
        if step % 2:
            state = model.grow_state(state, 2)
        if step:
            state = {**state, "beam": keras.tree.map_structure(swap, state["beam"])}
        result = call_model(
            model.decoder_step,
            {
                "token": ops.take(hypotheses[:, :, step], ops.array(slots(step)), axis=1),
                "position": ops.array(step, dtype="int32"),
                "state": state,
                "memory": memory,
            },
        )
        state = result["state"]
        logits.append(result["logits"][:, slots(step).index(0)])
    return ops.stack(logits, axis=1)
