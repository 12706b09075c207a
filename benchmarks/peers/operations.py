"""Floating-point operations of a training per target token, from the model shape.

A product of a row with an m x n matrix takes 2 m n operations, and the backward pass takes twice as
many as the forward pass: 6 m n in total. The encoder runs once per source token, which is
`source / target` times per target token. Attention products use the mean lengths. Padding and
operations other than matrix products (softmax, dropout, normalization, Adam) do not count.
"""

from __future__ import annotations


def transformer(model, source: float, target: float, vocabulary: int) -> float:
    """Operations of a Transformer.

    Args:
        model: `TransformerSettings` of the model.
        source: Mean length of the sources, including the end token.
        target: Mean length of the targets, including the end token.
        vocabulary: Number of vocabulary entries that are scored at each step.
    """
    units, inner = model.units, model.feedforward_units
    block = 4 * units**2 + 2 * units * inner
    encoder = model.num_encoder_layers * (block + 2 * source * units) * source / target
    # Cross-attention: keys and values for the source, queries and outputs for the target.
    crossing = 2 * units**2 * source / target + 2 * units**2 + 2 * source * units
    decoder = model.num_decoder_layers * (block + 2 * target * units + crossing)
    return 6 * (encoder + decoder + units * vocabulary)


def rnn(source: float, target: float, vocabulary: int) -> float:
    """Operations of a bidirectional LSTM (2 x 256) and an LSTM (512) with Bahdanau attention.

    The shape is that of OpenNMT-tf: the decoder reads an embedding of 256 and the attentional
    vector of the previous step. This vector, keys, queries and the output layer are 512 wide.
    """
    encoder = 2 * (256 + 256) * 4 * 256
    keys = 512 * 512
    cell = (256 + 512 + 512) * 4 * 512
    # Query, scores, weighted sum, attentional vector.
    attention = 512 * 512 + 2 * source * 512 + 2 * 512 * 512
    output = 512 * vocabulary
    return 6 * ((encoder + keys) * source / target + cell + attention + output)
