"""HTTP server of `keras-seq serve`, with the REST API of TensorFlow Serving.

Requires TensorFlow, tensorflow-text and `pip install 'keras-seq[serve]'`, but not Keras.
"""
