"""Error analysis: attributes translation errors to the search or to the model."""
