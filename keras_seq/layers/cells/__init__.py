"""Recurrent cells: one step of a sequence."""
