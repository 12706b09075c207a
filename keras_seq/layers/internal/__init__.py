"""Helpers of the layers; not public."""
