"""Batch and time may be unknown; feature axes never are."""

from conformance.harness import FREE, SIZES, built, functional, letters
from conformance.table import every_row


@every_row
def test_only_batch_and_time_are_unknown(row):
    model = functional(row, built(row))
    for output, spec in zip(model.outputs, row.outputs, strict=True):
        assert len(output.shape) == len(letters(spec))
        for size, letter in zip(output.shape, letters(spec), strict=True):
            assert size == SIZES[letter] or (size is None and letter in FREE)
