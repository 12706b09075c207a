"""Libraries of tensorflow-text, loaded directly because `import tensorflow_text` imports Keras."""

# Paths inside the package. A stock model server links all of these operations.
SENTENCEPIECE = "python/ops/_sentencepiece_tokenizer.so"
NORMALIZING = "python/ops/_normalize_ops.so"
WORD_PIECES = "python/ops/_fast_wordpiece_tokenizer.so"
TEXT_LIBRARIES = (SENTENCEPIECE, NORMALIZING, WORD_PIECES)
