"""Stacks of cells and bidirectional loops."""

from collections.abc import Iterable
from typing import Any

import keras

from keras_seq.layers.cells.residual_cell import ResidualCell
from keras_seq.layers.cells.rnn import RNN


def stacked(
    cells: Iterable[keras.layers.Layer], residual: bool = False
) -> keras.layers.StackedRNNCells:
    """Stacks cells into one cell, which runs them on top of each other.

        y_1, s_1' = cell_1(x, s_1);   y_k, s_k' = cell_k(y_{k-1}, s_k)

    With `residual=True` every cell but the first adds its input to its output (Wu et al., 2016):
    y_k = y_{k-1} + cell_k(y_{k-1}, s_k).

    Args:
        cells: Cells from the bottom to the top.
        residual: Whether to add residual connections. All cells then need equally many units.

    Returns:
        A `keras.layers.StackedRNNCells`, for `RNN` or an `AttentionCell`.

    Raises:
        ValueError: If `cells` is empty.

    Example:

    >>> cells = [LSTMCell(4), LSTMCell(4), LSTMCell(4)]
    >>> tuple(RNN(stacked(cells, residual=True))(keras.ops.ones((2, 7, 3))).shape)
    (2, 4)

    Reference:
        Sutskever, Vinyals and Le, "Sequence to Sequence Learning with Neural Networks", 2014,
        https://arxiv.org/abs/1409.3215; Wu et al., 2016, https://arxiv.org/abs/1609.08144
    """
    cells = list(cells)
    if not cells:
        raise ValueError("`cells` must have at least one cell, received an empty list.")
    if residual:
        cells = [cells[0], *(ResidualCell(cell) for cell in cells[1:])]
    return keras.layers.StackedRNNCells(cells)


def bidirectional(
    cell: Any, backward_cell: Any = None, merge_mode: str | None = "concat", **options: Any
) -> keras.layers.Bidirectional:
    """Builds a layer that reads a sequence from both ends (Schuster and Paliwal, 1997).

        y_t = [forward_t; backward_t]

    The backward direction reads from the last real step to the first. Its outputs are reversed,
    so that both outputs at index t belong to step t. Padding may be on either side.

    Args:
        cell: A cell, or a list of cells to stack.
        backward_cell: The cell of the backward direction. By default a copy of `cell` with
            separate weights and the same seed.
        merge_mode: "concat", "sum", "ave", "mul", or None to return both outputs.
        options: Further arguments of `RNN`. `return_sequences` defaults to True.

    Returns:
        A `keras.layers.Bidirectional` over an `RNN`.

    Example:

    >>> layer = bidirectional(GRUCell(4))
    >>> tuple(layer(keras.ops.ones((2, 7, 3))).shape)
    (2, 7, 8)
    """
    options = {"return_sequences": True, **options}
    backward = None
    if backward_cell is not None:
        backward = RNN(backward_cell, go_backwards=True, **options)
    return keras.layers.Bidirectional(
        RNN(cell, **options), merge_mode=merge_mode, backward_layer=backward
    )
