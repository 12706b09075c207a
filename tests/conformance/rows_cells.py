"""Rows of the contract; see `conformance.table`."""

from conformance.harness import Row

ROWS: list[Row] = []
