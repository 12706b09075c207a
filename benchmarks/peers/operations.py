"""Floating-point operations for each real target token of a training, from the shapes.

A product of a row with an m x n matrix is 2 m n operations, and the backward pass is twice the
forward pass: 6 m n. An encoder works once for each source token, of which there are
`source / target` for each target token; products of attention go over the mean length. What is
not a matrix product (softmax, dropout, norms, Adam) is not counted, nor is padding.
"""

from __future__ import annotations


def transformer(model, source: float, target: float, vocabulary: int) -> float:
    """Of a Transformer.

    Args:
        model: Its `TransformerSettings`.
        source: Mean length of the sources, with the end token.
        target: The same for the targets.
        vocabulary: Entries that are scored at each step.
    """
    units, inner = model.units, model.feedforward_units
    block = 4 * units**2 + 2 * units * inner
    encoder = model.num_encoder_layers * (block + 2 * source * units) * source / target
    # Attention over the source: keys and values of it, queries and outputs of the target.
    crossing = 2 * units**2 * source / target + 2 * units**2 + 2 * source * units
    decoder = model.num_decoder_layers * (block + 2 * target * units + crossing)
    return 6 * (encoder + decoder + units * vocabulary)


def rnn(source: float, target: float, vocabulary: int) -> float:
    """Of the bidirectional LSTM of 2 x 256 and the LSTM of 512 that attends as Bahdanau's.

    As OpenNMT-tf builds it: the decoder reads an embedding of 256 and the attentional vector of the
    step before; keys, queries and that vector are 512 wide, and so is what scores the vocabulary.
    """
    encoder = 2 * (256 + 256) * 4 * 256
    keys = 512 * 512
    cell = (256 + 512 + 512) * 4 * 512
    # Query, scores, weighted sum, attentional vector.
    attention = 512 * 512 + 2 * source * 512 + 2 * 512 * 512
    output = 512 * vocabulary
    return 6 * ((encoder + keys) * source / target + cell + attention + output)
