"""`keras-seq serve`: TensorFlow Serving's REST predict API over an exported SavedModel.

Needs TensorFlow and tensorflow-text, but not Keras, and `pip install 'keras-seq[serve]'`.
"""
