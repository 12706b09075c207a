"""Cells one on the other, and loops in both directions."""

import keras

from keras_seq.layers.cells.residual_cell import ResidualCell
from keras_seq.layers.cells.rnn import RNN


def stacked(cells, residual=False):
    """Cells one on the other, as one cell (Sutskever et al., 2014).

        y_1, s_1' = cell_1(x, s_1);   y_k, s_k' = cell_k(y_{k-1}, s_k)

    With `residual=True` the second cell and all after it add their input to
    their output (Wu et al., 2016): y_k = y_{k-1} + cell_k(y_{k-1}, s_k).

    Args:
        cells: List of cells, the first one first.
        residual: Whether there are residual connections from the second cell
            on. All cells then have as many units. Defaults to False.

    Returns:
        A `keras.layers.StackedRNNCells`, for `RNN` or an `AttentionCell`.

    Raises:
        ValueError: If there is no cell.

    >>> cells = [LSTMCell(4), LSTMCell(4), LSTMCell(4)]
    >>> tuple(RNN(stacked(cells, residual=True))(keras.ops.ones((2, 7, 3))).shape)
    (2, 4)
    """
    cells = list(cells)
    if not cells:
        raise ValueError("`cells` must hold one cell at least, received an empty list.")
    if residual:
        cells = [cells[0], *(ResidualCell(cell) for cell in cells[1:])]
    return keras.layers.StackedRNNCells(cells)


def bidirectional(cell, backward_cell=None, merge_mode="concat", **options):
    """A sequence read from both ends (Schuster and Paliwal, 1997).

        y_t = [forward_t; backward_t]

    The second reads from the last real step to the first, and its outputs are
    turned round again, so that both are at the step that they read. Padding
    may be on either side.

    Args:
        cell: A cell, or a list of cells that are stacked.
        backward_cell: The cell of the other direction. A copy of `cell` with
            weights of its own by default; it has the same seed then.
        merge_mode: "concat", "sum", "ave", "mul" or None for both outputs one
            after the other. Defaults to "concat".
        options: Of `RNN`. `return_sequences` defaults to True.

    Returns:
        A `keras.layers.Bidirectional` over an `RNN`.

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
