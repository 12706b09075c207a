"""Reports of a trained run: one HTML page with its curves, scores and worst lines."""
