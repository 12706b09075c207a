"""Error analysis, search error or model error: `keras_seq.diagnose`. Imports nothing."""
