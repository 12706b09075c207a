"""Maximum sizes of files that are read whole. A file from elsewhere may have any size.

Text has its bounds in `keras_seq.text`, settings in `keras_seq.settings`, and requests to a server
in `keras_seq.serving.http.limits`.
"""

# A result, or a record of a checkpoint, a job or an export: a few kilobytes.
MAX_RECORD_BYTES = 1 << 20
# A list of text files, shards or test sets. A shard of a million pairs takes about a hundred bytes,
# and a test set some kilobytes, more with many languages.
MAX_INDEX_BYTES = 16 << 20
# A vocabulary, or the settings of a pretrained model.
MAX_VOCABULARY_BYTES = 64 << 20
# A line of a table of numbers, such as the log of a training.
MAX_ROW_BYTES = 64 << 10
# Files and directories in a directory; a run or an export has far fewer.
MAX_ENTRIES = 100_000
# Samples of all channels of a recording: 12 hours of stereo at 48 kHz. They are decoded in blocks.
MAX_SOUND_VALUES = 1 << 32
# Samples of a recording after its channels are averaged, which are in memory together: 4 GB, or 18
# hours at 16 kHz.
MAX_SOUND_SAMPLES = 1 << 30
