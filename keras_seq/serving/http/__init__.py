"""HTTP server for an exported SavedModel (`keras-seq serve`), like TensorFlow Serving's REST API.

Requires TensorFlow, tensorflow-text and `pip install 'keras-seq[serve]'`, but not Keras.
"""
