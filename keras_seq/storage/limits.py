"""The largest files that are read whole, by what they hold. Files from elsewhere may be larger.

Text has its bounds in `keras_seq.text`, settings in `keras_seq.settings`, and requests to a server
in `keras_seq.serving.http.limits`.
"""

# A record of a checkpoint, a job or an export: a few kilobytes.
MAX_RECORD_BYTES = 1 << 20
# A list of text files or shards. A shard of a million pairs takes about a hundred bytes.
MAX_INDEX_BYTES = 16 << 20
# A vocabulary, or the settings of a pretrained model.
MAX_VOCABULARY_BYTES = 64 << 20
# A result, a model card or the scores of test sets, which are shown as they are.
MAX_SHOWN_BYTES = 1 << 16
# Files and directories in a directory; a run or an export has far fewer.
MAX_ENTRIES = 100_000
