"""Positions of tokens: learned, sinusoidal, rotary, relative."""
