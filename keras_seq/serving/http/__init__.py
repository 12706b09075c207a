"""`keras-seq serve`: TensorFlow Serving's REST predict API over an exported SavedModel.

The server needs TensorFlow and tensorflow-text, but not Keras. A SavedModel returns the same
outputs here and on a stock model server. The web framework is an extra:
`pip install 'keras-seq[serve]'`.

Reading order: `tensors` (JSON to arrays and back), `versions` (the directory), `model` (a loaded
version), `batching` (requests to batches), `watcher` (newer versions), `metrics`, `api` (the
routes), `page` (the demo page), `server` (start and stop).
"""
