"""Files and directories on disk: atomic writes, checked reads, and one writer per directory."""

from keras_seq.storage.atomic import (
    TEMPORARY,
    atomic_directory,
    atomic_file,
    check_no_link,
    check_writable,
    make_directory,
    open_to_append,
    remove,
    remove_temporaries,
    sync_parent,
    sync_tree,
    temporary_directory,
    write_file,
)
from keras_seq.storage.copying import copy_tree
from keras_seq.storage.lines import atomic_lines
from keras_seq.storage.lock import LOCK, DirectoryLock
from keras_seq.storage.named_errors import named_errors
from keras_seq.storage.reading import (
    check_regular,
    check_tree,
    hash_file,
    open_regular,
    read_file,
    read_json,
    reason,
    size_on_disk,
)
from keras_seq.storage.space import require_space

__all__ = [
    "LOCK",
    "TEMPORARY",
    "DirectoryLock",
    "atomic_directory",
    "atomic_file",
    "atomic_lines",
    "check_no_link",
    "check_regular",
    "check_tree",
    "check_writable",
    "copy_tree",
    "hash_file",
    "make_directory",
    "named_errors",
    "open_regular",
    "open_to_append",
    "read_file",
    "read_json",
    "reason",
    "remove",
    "remove_temporaries",
    "require_space",
    "size_on_disk",
    "sync_parent",
    "sync_tree",
    "temporary_directory",
    "write_file",
]
