"""HTTP server of `keras-seq serve`, with the REST API of TensorFlow Serving.

Requires TensorFlow, tensorflow-text and `python -m pip install 'keras-seq[serve]'`, but not Keras.
"""
