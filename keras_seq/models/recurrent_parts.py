"""What the recurrent encoder-decoder is put together from."""

from types import SimpleNamespace

import keras
from keras import ops

from keras_seq.layers.attention.attention_cell import AttentionCell, has_state
from keras_seq.layers.attention.attention_decoder import AttentionDecoder
from keras_seq.layers.attention.bahdanau_attention import BahdanauAttention
from keras_seq.layers.attention.location_sensitive_attention import LocationSensitiveAttention
from keras_seq.layers.attention.luong_attention import LuongAttention
from keras_seq.layers.convolutional_encoder import ConvolutionalEncoder
from keras_seq.layers.embedding.token_embedding import TokenEmbedding
from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.layers.positions.sinusoidal_position import SinusoidalPosition
from keras_seq.models.attention_output import WithWeights
from keras_seq.models.cell_step import CellStep
from keras_seq.models.checks import check_choice, check_sizes
from keras_seq.models.output_mask import masked_logits

# Shape letters: B batch, S source steps, T target steps, K beam, U units, V words.

CHOICES = {
    "encoder": ("recurrent", "convolutional"),
    "cell": ("gru", "lstm"),
    "attention": ("bahdanau", "luong"),
    "context": ("every_step", "init"),
    "bridge": ("copy", "dense", "zero"),
}
RECURRENT = {"gru": keras.layers.GRU, "lstm": keras.layers.LSTM}


def check(config):
    """Raises ValueError where options are unknown or do not fit each other."""
    for name, choices in CHOICES.items():
        check_choice(name, config[name], choices)
    check_sizes(
        num_encoder_layers=config["num_encoder_layers"],
        num_decoder_layers=config["num_decoder_layers"],
        embedding_units=config["embedding_units"],
        encoder_units=config["encoder_units"],
        decoder_units=config["decoder_units"],
    )
    sizes = config["source_vocabulary_size"], config["target_vocabulary_size"]
    if config["share_embeddings"] and sizes[0] != sizes[1]:
        raise ValueError(
            "`share_embeddings` needs one vocabulary for both sides, received "
            f"{sizes[0]} source and {sizes[1]} target words."
        )
    if config["bridge"] == "copy" and config["decoder_units"] != 2 * config["encoder_units"]:
        raise ValueError(
            'bridge="copy" needs `decoder_units` twice `encoder_units` (both directions '
            f"joined), received {config['decoder_units']} and {config['encoder_units']}: "
            'change one or use bridge="dense".'
        )


def make_layers(config, dtype):
    """All layers of the model, by name.

    Args:
        config: Namespace of the model's constructor arguments.
        dtype: Dtype policy of all layers, or None for the default.
    """
    # Between recurrent layers is dropout of ours; convolutions have their own, of one seed.
    in_encoder = config.num_encoder_layers - 1 if config.encoder == "recurrent" else 1
    seeds = split_seed(config.seed, 3 + in_encoder + config.num_decoder_layers)

    def dropout(name):
        return keras.layers.Dropout(config.dropout, seed=seeds.pop(), dtype=dtype, name=name)

    def embedding(name, vocabulary_size):
        return TokenEmbedding(vocabulary_size, config.embedding_units, dtype=dtype, name=name)

    parts = SimpleNamespace()
    shared = config.share_embeddings
    parts.target_embedding = embedding(
        "embedding" if shared else "target_embedding", config.target_vocabulary_size
    )
    parts.source_embedding = (
        parts.target_embedding
        if shared
        else embedding("source_embedding", config.source_vocabulary_size)
    )
    parts.source_dropout, parts.target_dropout = (
        dropout("source_dropout"),
        dropout("target_dropout"),
    )
    if config.encoder == "recurrent":
        encoder_layers = bidirectional_layers(
            config.cell, config.num_encoder_layers, config.encoder_units, dtype
        )
        dropouts = [dropout(f"encoder_dropout_{i}") for i in range(1, config.num_encoder_layers)]
        parts.read = recurrent_reader(encoder_layers, dropouts)
    else:
        convolutions = ConvolutionalEncoder(
            2 * config.encoder_units,
            config.num_encoder_layers,
            dropout=config.dropout,
            seed=seeds.pop(),
            dtype=dtype,
            name="encoder",
        )
        position = SinusoidalPosition(dtype=dtype, name="position")
        parts.read = _convolutional_reader(
            position, convolutions, {"gru": 1, "lstm": 2}[config.cell]
        )

    add_decoder(parts, config, seeds, dtype)
    return parts


def add_decoder(parts, config, seeds, dtype):
    """Adds the layers of the decoder to those that read its tokens.

    Args:
        parts: Namespace with `target_embedding`.
        config: As for `make_layers`; `attention` may also be "location".
        seeds: List that seeds are popped from: one more than there are decoder layers.
        dtype: Dtype policy of all layers, or None for the default.
    """
    layers, units = keras.layers, config.decoder_units
    recurrent = RECURRENT[config.cell]
    recurrent_cell = {"gru": layers.GRUCell, "lstm": layers.LSTMCell}[config.cell]

    def dropout(name):
        return layers.Dropout(config.dropout, seed=seeds.pop(), dtype=dtype, name=name)

    common = {
        "dropout": config.attention_dropout,
        "seed": seeds.pop(),
        "dtype": dtype,
        "name": "attention",
    }
    if config.attention == "bahdanau":
        parts.attention = BahdanauAttention(config.attention_units, **common)
    elif config.attention == "location":
        parts.attention = LocationSensitiveAttention(config.attention_units, **common)
    else:
        parts.attention = LuongAttention("general", **common)
    parts.attention_cell = AttentionCell(
        recurrent_cell(units, dtype=dtype, name=config.cell),
        parts.attention,
        input_feeding=config.input_feeding,
        dtype=dtype,
        name="cell",
    )
    parts.decoder = AttentionDecoder(parts.attention_cell, dtype=dtype, name="decoder_0")
    above = range(1, config.num_decoder_layers)
    parts.upper_layers = [
        recurrent(units, return_sequences=True, dtype=dtype, name=f"decoder_{i}") for i in above
    ]
    parts.upper_dropouts = [dropout(f"decoder_dropout_{i}") for i in above]
    parts.output_dropout = dropout("output_dropout")
    parts.to_logits = _output(config, parts.target_embedding, dtype)
    parts.bridges = [
        [
            ExactDense(units, activation="tanh", dtype=dtype, name=f"bridge_{i}_{part}")
            for part in range({"gru": 1, "lstm": 2}[config.cell])
        ]
        for i in range(config.num_decoder_layers)
    ]


def _output(config, embedding, dtype):
    """Decoder outputs -> float32 logits."""
    if not config.tie_output:
        dense = ExactDense(config.target_vocabulary_size, dtype=dtype, name="logits")
        return lambda x: ops.cast(dense(x), "float32")
    if config.embedding_units == config.decoder_units:
        return lambda x: embedding(x, reverse=True)
    narrow = ExactDense(
        config.embedding_units, use_bias=False, dtype=dtype, name="output_projection"
    )
    return lambda x: embedding(narrow(x), reverse=True)


def encode(parts, source, mask):
    """The encoder's part of the graph.

    Args:
        parts: From `make_layers`.
        source: Ids `(B, S)`.
        mask: Bool `(B, S)`, True = real.

    Returns:
        Outputs `(B, S, 2U)`; their summary `(B, 2U)`; for each layer that has
        them its last states `(B, 2U)`. Recurrent: the summary is the last
        output of each direction, the states are those of both directions
        joined. Convolutional: all are the mean of the outputs.
    """
    return parts.read(parts.source_dropout(parts.source_embedding(source)), mask)


def bidirectional_layers(cell, num_layers, units, dtype):
    """Layers of an encoder, `units` in each direction."""
    # The inner name is given, so that weights are called the same in all processes.
    return [
        keras.layers.Bidirectional(
            RECURRENT[cell](
                units, return_sequences=True, return_state=True, dtype=dtype, name=cell
            ),
            dtype=dtype,
            name=f"encoder_{i}",
        )
        for i in range(num_layers)
    ]


def join_directions(states):
    """States of a bidirectional layer, those of the way forth first -> each with its other half."""
    half = len(states) // 2
    return [
        ops.concatenate([forward, backward], axis=-1)
        for forward, backward in zip(states[:half], states[half:], strict=True)
    ]


def recurrent_reader(layers, dropouts):
    """The layers one on the other, residual from the second: what `encode` gives of `x`, `mask`.

    Args:
        layers: From `bidirectional_layers`.
        dropouts: Those between them, one less.
    """

    def read(x, mask):
        last_states = []
        for i, layer in enumerate(layers):
            inputs = dropouts[i - 1](x) if i else x
            outputs, *states = layer(inputs, mask=mask)
            last_states.append(join_directions(states))
            x = x + outputs if i else outputs
        return x, last_states[-1][0], last_states

    return read


def _convolutional_reader(position, convolutions, num_states):
    def read(x, mask):
        outputs = convolutions(position(x), mask=mask)
        count = ops.sum(ops.cast(mask, outputs.dtype), axis=1, keepdims=True)
        # Padding is 0 in the outputs; a row of nothing else has none to divide by.
        mean = ops.sum(outputs, axis=1) / ops.maximum(count, 1)
        return outputs, mean, [[mean] * num_states]

    return read


def make_bridge(parts, last_states, kind):
    """First states `(B, U)` of each decoder layer from the encoder's last ones."""
    states = []
    for i, layers in enumerate(parts.bridges):
        given = last_states[min(i, len(last_states) - 1)]
        if kind == "copy":
            states.append(given)
        elif kind == "dense":
            states.append([layer(state) for layer, state in zip(layers, given, strict=True)])
        else:
            units = parts.attention_cell.output_size
            states.append([ops.zeros_like(state[:, :1]) + ops.zeros((units,)) for state in given])
    return states


def name_states(states):
    """Nested states -> a flat dict of `state_LAYER_PART`."""
    return {
        f"state_{i}_{j}": state for i, layer in enumerate(states) for j, state in enumerate(layer)
    }


def decode(parts, target, memory, states, layers=()):
    """Scores of what follows each token of whole targets.

    Args:
        parts: From `make_layers`.
        target: Symbolic ids `(B, T)`.
        memory: Dict of the symbolic `value` `(B, S, D_v)`, `value_mask` and, if it is read,
            `summary`.
        states: From `make_bridge`.
        layers: Those whose weights are asked for: none, or (0,).

    Returns:
        Float32 logits `(B, T, V)`, with the mask of the target; the weights of each of
        `layers`, `(B, 1, T, S)`.
    """
    first = {"cell": states[0]}
    if parts.attention_cell.feeds_attentional_state:
        first["attentional_state"] = ops.zeros_like(states[0][0])
    if has_state(parts.attention):
        first["attention"] = parts.attention.initial_state(memory["value"])
    inputs = {**memory, "states": first}
    x = parts.target_dropout(parts.target_embedding(target))
    attention = []
    if layers:
        x, weights = WithWeights(parts.decoder, name="weights")({"inputs": x, **inputs})
        attention.append(ops.cast(weights, "float32")[:, None])
    else:
        x, _ = parts.decoder(x, **inputs)
    for upper, dropped, initial in zip(
        parts.upper_layers, parts.upper_dropouts, states[1:], strict=True
    ):
        x = x + upper(dropped(x), initial_state=initial)
    return masked_logits(parts.to_logits(parts.output_dropout(x)), target), attention


def make_decoder_step(parts, memory, attending=False):
    """The functional model of one step over built layers.

    Args:
        parts: From `make_layers`.
        memory: Dict of the encoder's symbolic outputs.
        attending: Whether the attention `(B, K, S)` is an output, too.
    """
    memory = {
        name: keras.Input(batch_shape=tensor.shape, dtype=tensor.dtype, name=f"memory_{name}")
        for name, tensor in memory.items()
    }
    token = keras.Input((None,), dtype="int32", name="token")
    position = keras.Input(batch_shape=(), dtype="int32", name="position")
    units, dtype = parts.attention_cell.output_size, parts.attention_cell.compute_dtype
    names = [name for name in memory if name.startswith("state_")]
    # The attentional vector, and what was looked at before.
    further = ["attentional_state"] if parts.attention_cell.feeds_attentional_state else []
    beam = {name: keras.Input((None, units), dtype=dtype, name=name) for name in names + further}
    if has_state(parts.attention):
        further.append("attention")
        beam["attention"] = keras.Input((None, None), dtype=dtype, name="attention")

    def states_of(layer):
        return [beam[name] for name in names if name.startswith(f"state_{layer}_")]

    first = {"cell": states_of(0), **{name: beam[name] for name in further}}
    x, after, weights = parts.attention_cell(
        parts.target_embedding(token),
        first,
        memory["value"],
        value_mask=memory["mask"],
        key=memory["key"],
        summary=memory.get("summary"),
    )
    new_states = [after["cell"]]
    for i, layer in enumerate(parts.upper_layers, start=1):
        outputs, states = CellStep(layer.cell, name=f"decoder_step_{i}")(x, states_of(i))
        x = x + outputs
        new_states.append(states)
    new_beam = name_states(new_states) | {name: after[name] for name in further}
    outputs = {"logits": parts.to_logits(x), "state": {"beam": new_beam, "shared": {}}}
    if attending:
        outputs["attention"] = ops.cast(weights, "float32")
    return keras.Model(
        inputs={
            "token": token,
            "position": position,
            "state": {"beam": beam, "shared": {}},
            "memory": memory,
        },
        outputs=outputs,
        name="decoder_step",
    )
