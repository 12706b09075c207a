"""One step of each recurrent cell for one row, in float64 numpy, from the equations of the papers.

Every function takes x `(D,)`, the states, each `(U,)`, and the weights by name, and gives the
output and the new states. Gates are in the order that the docstrings of the cells say.
"""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def normalize(x, gamma, beta=0.0, epsilon=1e-3):
    return gamma * (x - x.mean()) / np.sqrt(x.var() + epsilon) + beta


def weights_of(cell):
    """Returns the weights of a cell by name, such as `kernel` or `kernel_norm/gamma`."""
    paths = [weight.path.split("/") for weight in cell.weights]
    names = ["/".join(path[-2:]) if "norm" in path[-2] else path[-1] for path in paths]
    # Drop the cell's name, because it may contain "norm".
    names = [name.split("/")[-1] if "cell" in name.split("/")[0] else name for name in names]
    arrays = [np.asarray(weight.numpy(), "float64") for weight in cell.weights]
    return dict(zip(names, arrays, strict=True))


def columns(weights, count):
    """The matrices and bias of each gate."""
    kernels = np.split(weights["kernel"], count, axis=1)
    recurrent = np.split(weights["recurrent_kernel"], count, axis=1)
    biases = np.split(weights["bias"], count, axis=-1) if "bias" in weights else [0] * count
    return list(zip(kernels, recurrent, biases, strict=True))


def gru(x, states, weights, reset="after", update="keep"):
    (h,) = states
    parts = columns(weights, 2 if reset == "none" else 3)
    if reset == "after":
        gates = [sigmoid(x @ w + h @ u + b.sum(axis=0)) for w, u, b in parts[:-1]]
        w, u, b = parts[-1]
        candidate = np.tanh(x @ w + b[0] + gates[1] * (h @ u + b[1]))
    else:
        gates = [sigmoid(x @ w + h @ u + b) for w, u, b in parts[:-1]]
        w, u, b = parts[-1]
        r = gates[1] if reset == "before" else 1.0
        candidate = np.tanh(x @ w + (r * h) @ u + b)
    if update == "keep":
        h = gates[0] * h + (1 - gates[0]) * candidate
    else:
        h = gates[0] * candidate + (1 - gates[0]) * h
    return h, [h]


def lstm(x, states, weights, output_activation=np.tanh):
    h, c = states
    i, f, candidate, o = (x @ w + h @ u + b for w, u, b in columns(weights, 4))
    c = sigmoid(i) * np.tanh(candidate) + sigmoid(f) * c
    h = sigmoid(o) * output_activation(c)
    return h, [h, c]


def peephole_lstm(x, states, weights):
    h, c = states
    p = {gate: weights[f"{gate}_gate_peephole_weights"] for gate in ("input", "forget", "output")}
    i, f, candidate, o = (x @ w + h @ u + b for w, u, b in columns(weights, 4))
    i, f = sigmoid(i + p["input"] * c), sigmoid(f + p["forget"] * c)
    c = f * c + i * np.tanh(candidate)
    h = sigmoid(o + p["output"] * c) * np.tanh(c)
    return h, [h, c]


def layer_norm_lstm(x, states, weights, carry="normalized"):
    h, c = states
    norms = {
        name: (weights[f"{name}_norm/gamma"], weights[f"{name}_norm/beta"])
        for name in ("kernel", "recurrent", "state")
    }
    gates = (
        normalize(x @ weights["kernel"], *norms["kernel"])
        + normalize(h @ weights["recurrent_kernel"], *norms["recurrent"])
        + weights["bias"]
    )
    i, f, candidate, o = np.split(gates, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(candidate)
    n = normalize(c, *norms["state"])
    h = sigmoid(o) * np.tanh(n)
    return h, [h, n if carry == "normalized" else c]


def layer_norm_simple(x, states, weights):
    s = x @ weights["kernel"] + states[0] @ weights["recurrent_kernel"]
    h = np.tanh(normalize(s, weights["norm/gamma"], epsilon=1e-5) + weights["bias"])
    return h, [h]


def nas(x, states, weights):
    h, c = states
    a = np.split(x @ weights["kernel"], 8)
    b = np.split(h @ weights["recurrent_kernel"] + weights.get("bias", 0), 8)
    m0 = np.tanh(sigmoid(a[0] + b[0]) * np.maximum(a[1] + b[1], 0))
    m1 = np.tanh(sigmoid(a[2] + b[2]) + np.maximum(a[3] * b[3], 0))
    m2 = np.tanh(np.tanh(a[4] + b[4]) * sigmoid(a[5] + b[5]))
    m3 = sigmoid(np.tanh(a[6] + b[6]) + sigmoid(a[7] + b[7]))
    c = np.tanh(m0 + c) * m1
    h = np.tanh(c * np.tanh(m2 + m3))
    if "projection" in weights:
        h = h @ weights["projection"]
    return h, [h, c]


def esn(x, states, weights, leaky=1.0):
    (h,) = states
    new = np.tanh(x @ weights["kernel"] + h @ weights["recurrent_kernel"] + weights["bias"])
    h = (1 - leaky) * h + leaky * new
    return h, [h]


def unroll(step, inputs, sizes):
    """Outputs `(T, U)` and last states of one row without padding, from states of zeros."""
    states, outputs = [np.zeros(size) for size in sizes], []
    for x in np.asarray(inputs, "float64"):
        output, states = step(x, states)
        outputs.append(output)
    return np.array(outputs), states
