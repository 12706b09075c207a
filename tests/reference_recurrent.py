"""Reference recurrent cells, attentions and recurrent model in plain numpy, float64.

The code follows the papers, not the package. Each row is computed alone, step by step and
without padding, so neither padding nor other rows of the batch can affect a result.

Shape letters: T target steps, S source steps, D features, U units.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from reference_transformer import sinusoid

Weights = Mapping[str, np.ndarray]
States = list[np.ndarray]


def named_arrays(layer) -> dict[str, np.ndarray]:
    """Returns the weights of a layer or model by path, in float64."""
    return {weight.path: np.asarray(weight.numpy(), "float64") for weight in layer.weights}


def randomize(layer, seed: int = 0, scale: float = 0.5) -> None:
    """Sets all weights to random values, because a bias of 0 would hide errors."""
    generator = np.random.default_rng(seed)
    layer.set_weights([generator.normal(size=w.shape) * scale for w in layer.get_weights()])


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def lstm(x: np.ndarray, states: States, weights: Weights, name: str) -> tuple[np.ndarray, States]:
    """LSTM cell with forget gates; gate order i, f, c, o."""
    hidden, carry = states
    gates = (
        x @ weights[f"{name}/kernel"]
        + hidden @ weights[f"{name}/recurrent_kernel"]
        + weights[f"{name}/bias"]
    )
    update, forget, candidate, output = np.split(gates, 4)
    carry = sigmoid(update) * np.tanh(candidate) + sigmoid(forget) * carry
    hidden = sigmoid(output) * np.tanh(carry)
    return hidden, [hidden, carry]


def gru(x: np.ndarray, states: States, weights: Weights, name: str) -> tuple[np.ndarray, States]:
    """GRU cell with the reset gate applied after the product; gate order z, r, h."""
    (hidden,) = states
    input_bias, recurrent_bias = weights[f"{name}/bias"]
    outer = np.split(x @ weights[f"{name}/kernel"] + input_bias, 3)
    inner = np.split(hidden @ weights[f"{name}/recurrent_kernel"] + recurrent_bias, 3)
    update, reset = sigmoid(outer[0] + inner[0]), sigmoid(outer[1] + inner[1])
    candidate = np.tanh(outer[2] + reset * inner[2])
    hidden = update * hidden + (1 - update) * candidate
    return hidden, [hidden]


def simple(x: np.ndarray, states: States, weights: Weights, name: str) -> tuple[np.ndarray, States]:
    """Elman's simple recurrent cell."""
    hidden = np.tanh(
        x @ weights[f"{name}/kernel"]
        + states[0] @ weights[f"{name}/recurrent_kernel"]
        + weights[f"{name}/bias"]
    )
    return hidden, [hidden]


CELLS = {"lstm": (lstm, 2), "gru": (gru, 1), "simple": (simple, 1)}


def bahdanau(query: np.ndarray, value: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    """Attention weights `(S,)` of one query over the unpadded steps of one source."""
    scores = [
        weights[f"{name}/score_vector"]
        @ np.tanh(query @ weights[f"{name}/query_kernel"] + row @ weights[f"{name}/value_kernel"])
        for row in value
    ]
    return softmax(np.array(scores))


def luong(
    query: np.ndarray, value: np.ndarray, weights: Weights, name: str, score: str = "general"
) -> np.ndarray:
    """Attention weights `(S,)` of one query over the unpadded steps of one source."""
    if score == "dot":
        scores = [query @ row for row in value]
    elif score == "scaled":
        scores = [query @ row / np.sqrt(len(query)) for row in value]
    elif score == "general":
        scores = [query @ (row @ weights[f"{name}/kernel"]) for row in value]
    else:
        stacked = np.concatenate(
            [weights[f"{name}/query_kernel"], weights[f"{name}/value_kernel"]], axis=0
        )
        scores = [
            weights[f"{name}/score_vector"] @ np.tanh(np.concatenate([query, row]) @ stacked)
            for row in value
        ]
    return softmax(np.array(scores))


def attention_decoder(
    inputs: np.ndarray,
    value: np.ndarray,
    states: States,
    advance: Callable[[np.ndarray, States], tuple[np.ndarray, States]],
    attend: Callable[[np.ndarray, np.ndarray], np.ndarray],
    kernel: np.ndarray,
    input_feeding: bool = True,
    query: str = "current",
) -> tuple[np.ndarray, np.ndarray]:
    """Outputs h~ `(T, U)` and attention weights `(T, S)` of one row, from its initial states."""
    hidden, fed = states[0], np.zeros(kernel.shape[1])
    outputs, all_weights = [], []
    for x in inputs:
        if query == "previous":
            weights = attend(hidden, value)
            x = np.concatenate([x, weights @ value]) if input_feeding else x
            hidden, states = advance(x, states)
        else:
            hidden, states = advance(np.concatenate([x, fed]) if input_feeding else x, states)
            weights = attend(hidden, value)
        fed = np.tanh(np.concatenate([weights @ value, hidden]) @ kernel)
        outputs.append(fed)
        all_weights.append(weights)
    return np.array(outputs), np.array(all_weights)


def unroll(inputs: np.ndarray, states: States, cell: str, weights: Weights, name: str):
    """Returns the outputs `(T, U)` and the final states of one row."""
    outputs = []
    for x in inputs:
        output, states = CELLS[cell][0](x, states, weights, name)
        outputs.append(output)
    return np.array(outputs), states


def bidirectional(x: np.ndarray, cell: str, weights: Weights, num_layers: int):
    """Returns outputs `(S, 2U)` and each layer's final states, both directions concatenated."""
    last = []
    for i in range(num_layers):
        name = f"encoder_{i}/%s_{cell}/{cell}_cell"
        units = weights[f"{name % 'forward'}/recurrent_kernel"].shape[0]
        zeros = [np.zeros(units)] * CELLS[cell][1]
        forward, last_forward = unroll(x, zeros, cell, weights, name % "forward")
        backward, last_backward = unroll(x[::-1], zeros, cell, weights, name % "backward")
        outputs = np.concatenate([forward, backward[::-1]], axis=1)
        x = x + outputs if i else outputs
        last.append(
            [np.concatenate(pair) for pair in zip(last_forward, last_backward, strict=True)]
        )
    return x, last


def gated_convolutions(x: np.ndarray, weights: Weights, name: str, num_layers: int) -> np.ndarray:
    """Gated convolutions of width 3 from Gehring et al.: `(S, D)` to `(S, U)`."""
    hidden = x @ weights[f"{name}/projection/kernel"] + weights[f"{name}/projection/bias"]
    for i in range(num_layers):
        kernel = weights[f"{name}/convolution_{i}/kernel"]  # (3, U, 2U)
        padded = np.pad(hidden, [(1, 1), (0, 0)])
        both = sum(padded[shift : shift + len(x)] @ kernel[shift] for shift in range(3))
        outputs, gates = np.split(both + weights[f"{name}/convolution_{i}/bias"], 2, axis=1)
        hidden = (hidden + outputs * sigmoid(gates)) * np.sqrt(0.5)
    return hidden


def recurrent_seq2seq(
    source: Sequence[int], target: Sequence[int], weights: Weights, options: Mapping
) -> np.ndarray:
    """Returns the logits `(T, V)` of one unpadded row."""
    cell, parts = options["cell"], CELLS[options["cell"]][1]
    shared = "embedding/embeddings" in weights
    source_table = weights["embedding/embeddings" if shared else "source_embedding/embeddings"]
    target_table = weights["embedding/embeddings" if shared else "target_embedding/embeddings"]
    scale = np.sqrt(source_table.shape[1])

    x = source_table[list(source)] * scale
    if options["encoder"] == "convolutional":
        positions = [sinusoid(step, x.shape[1]) for step in range(len(x))]
        x = gated_convolutions(x + positions, weights, "encoder", options["num_encoder_layers"])
        last = [[x.mean(axis=0)] * parts]
    else:
        x, last = bidirectional(x, cell, weights, options["num_encoder_layers"])

    states = []
    for i in range(options["num_decoder_layers"]):
        given = last[min(i, len(last) - 1)]
        if options["bridge"] == "dense":
            given = [
                np.tanh(g @ weights[f"bridge_{i}_{j}/kernel"] + weights[f"bridge_{i}_{j}/bias"])
                for j, g in enumerate(given)
            ]
        elif options["bridge"] == "zero":
            given = [np.zeros(options["decoder_units"])] * parts
        states.append(given)

    y = target_table[list(target)] * scale
    if options["context"] == "every_step":
        y = np.concatenate([y, np.tile(last[-1][0], (len(y), 1))], axis=1)
    attend = bahdanau if options["attention"] == "bahdanau" else luong
    y, _ = attention_decoder(
        y,
        x,
        states[0],
        lambda inputs, states: CELLS[cell][0](inputs, states, weights, f"decoder_0/cell/{cell}"),
        lambda query, value: attend(query, value, weights, "decoder_0/cell/attention"),
        weights["decoder_0/cell/kernel"],
        options["input_feeding"],
    )
    for i in range(1, options["num_decoder_layers"]):
        y = y + unroll(y, states[i], cell, weights, f"decoder_{i}/{cell}_cell")[0]
    if not options["tie_output"]:
        return y @ weights["logits/kernel"] + weights["logits/bias"]
    if "output_projection/kernel" in weights:
        y = y @ weights["output_projection/kernel"]
    return y @ target_table.T
