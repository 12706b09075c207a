"""The targets of the fuzzers: a strategy that draws damaged files, and a check, for each format.

A check may raise nothing: whatever a file holds, the library reads it or refuses it with an error
of one line for its owner.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import hypothesis.strategies as st
import numpy as np
from fuzzing.command_target import COMMANDS, NEVER, check_commands, command_files, tune_command
from fuzzing.fuzz import NAMES
from fuzzing.mutations import (
    damaged_bytes,
    damaged_json,
    json_files,
    message_files,
    settings_files,
)
from fuzzing.run_target import refusing, run_files

from keras_seq.serving.graph_file.operations import check_trusted
from keras_seq.serving.graph_file.signatures import read_signatures
from keras_seq.settings import Settings, SettingsError, load_settings
from keras_seq.settings.settings import walk_fields
from keras_seq.storage.checkpoints.tensor_file import (
    TensorFileError,
    read_tensors,
    tensor_spec,
    write_tensors,
)
from keras_seq.text import (
    InputError,
    Tokenizer,
    import_tokenizer,
    read_labeled,
    read_lines,
    read_table,
    read_word_vectors,
)

LINES = ["a dog runs", "ein Hund rennt", "two cats", "zwei Katzen", "½ é 漢 😀"] * 3


class Target(NamedTuple):
    """Files to read, and a check that fails if one leads to an internal error."""

    files: st.SearchStrategy[bytes]
    check: Callable[[bytes], None]


def settings(folder: Path) -> Target:
    path = folder / "settings.toml"

    def check(content: bytes) -> None:
        path.write_bytes(content)
        with refusing(SettingsError):
            read = load_settings(file=path)
            assert Settings.from_toml(read.to_toml(), where="") == read

    keys = [key for key, _ in walk_fields() if not key.startswith(NEVER)]
    return Target(settings_files(keys), check)


def tensor_files(folder: Path) -> Target:
    path = folder / "weights.safetensors"
    arrays = {"a/kernel": np.ones((3, 4), np.float32), "optimizer/1/x": np.ones(2, np.int64)}
    expected = {name: tensor_spec(array.shape, array.dtype) for name, array in arrays.items()}
    write_tensors(path, arrays)
    whole = path.read_bytes()
    size = int.from_bytes(whole[:8], "little")
    header, data = json.loads(whole[8 : 8 + size]), whole[8 + size :]

    def with_header(value: object) -> bytes:
        text = json.dumps(value).encode()
        return len(text).to_bytes(8, "little") + text + data

    def check(content: bytes) -> None:
        path.write_bytes(content)
        with refusing(TensorFileError):
            read = read_tensors(path, expected)
            assert {name: tensor_spec(a.shape, a.dtype) for name, a in read.items()} == expected

    return Target(st.one_of(damaged_json(header).map(with_header), damaged_bytes(whole)), check)


def run_directories(folder: Path) -> Target:
    """The content of a file begins with the name of the run and of the file in the run."""
    return Target(*run_files(folder))


def tokenizers(folder: Path) -> Target:
    tokenizer = Tokenizer.train(LINES, size=300)

    def check(content: bytes) -> None:
        with refusing(InputError):
            read = Tokenizer.from_bytes(content)
            ids = read.encode(LINES[:5])
            assert all(0 < token < read.vocabulary_size for row in ids for token in row)
            assert len(read.decode(ids)) == 5

    return Target(message_files(tokenizer.to_bytes()), check)


def imported_tokenizers(folder: Path) -> Target:
    path = folder / "tokenizer.json"
    words = {"<unk>": 0, "a": 1, "dog": 2, "do": 3, "d": 4, "o": 5, "g": 6}
    whole = {
        "added_tokens": [{"id": 0, "content": "<unk>", "special": True}],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}]},
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
        "model": {
            "type": "BPE",
            "vocab": words,
            "merges": [["d", "o"], ["do", "g"]],
            "unk_token": "<unk>",
            "byte_fallback": False,
        },
    }

    unigram = {"type": "Unigram", "unk_id": 0, "vocab": [[text, -1.5] for text in words]}

    def check(content: bytes) -> None:
        path.write_bytes(content)
        with refusing(InputError):
            import_tokenizer(path, LINES[:2])

    return Target(st.one_of(json_files(whole), json_files(whole | {"model": unigram})), check)


def text_files(folder: Path) -> Target:
    """The first byte of the content chooses the format."""
    plain, table, packed = folder / "lines.txt", folder / "pairs.csv", folder / "pairs.tsv.gz"
    content = b'id\tsource\ttarget\n1\ta dog\tein Hund\n2\t"two\tcats"\tzwei, Katzen\n'

    def check(drawn: bytes) -> None:
        kind, rest = drawn[:1], drawn[1:]
        plain.write_bytes(rest)
        with refusing(InputError):
            lines = [*read_lines(plain)]
            assert len(lines) == rest.count(b"\n") + (not rest.endswith(b"\n") and rest != b"")
        table.write_bytes(rest)
        packed.write_bytes(rest if kind == b"\x01" else gzip.compress(rest, 1))
        columns = "source=2,target=3" if kind == b"\x02" else None
        for path in (plain, table, packed):
            with refusing(InputError):
                assert all(len(pair) == 2 for pair in read_table(path, columns=columns))
            with refusing(InputError):
                for words, tags in read_labeled(path, tagged=True):
                    found = re.findall(r"[^ \t\n\r\v\f]+", words)
                    assert len(found) == len(tags.split(" ") if tags else [])
        with refusing(InputError):
            vectors, width = read_word_vectors(plain)
            assert all(vector.shape == (width,) for vector in vectors.values())

    kinds = st.sampled_from([b"\x00", b"\x01", b"\x02"])
    starts = [content, content.replace(b"\t", b","), b"2 3\na 1 2 3\nb 1 2 3e4\n"]
    packed_starts = [gzip.compress(content, mtime=0)]
    damaged = st.sampled_from(starts + packed_starts).flatmap(damaged_bytes)
    return Target(st.tuples(kinds, damaged).map(b"".join), check)


def saved_models(folder: Path) -> Target:
    import tensorflow as tf

    class Module(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def serve(self, lines: tf.Tensor) -> dict[str, tf.Tensor]:
            return {"text": tf.map_fn(tf.strings.lower, lines)}

    module, version = Module(), folder / "served" / "1"
    tf.saved_model.save(module, str(version), signatures={"serving_default": module.serve})
    path = version / "saved_model.pb"
    whole = path.read_bytes()

    def check(content: bytes) -> None:
        path.write_bytes(content)
        with refusing(InputError):
            check_trusted(version)
        with refusing(InputError):
            read_signatures(version)

    return Target(message_files(whole), check)


def http_requests(folder: Path) -> Target:
    from fuzzing.http_target import check_request, requests

    return Target(requests(), check_request)


def commands(folder: Path) -> Target:
    """The content begins with the name of a command, and of a file that the command reads."""
    (folder / "search").mkdir()
    all_commands = COMMANDS | {"tune": tune_command(folder / "search")}
    return Target(command_files(all_commands), check_commands(all_commands, folder / "files"))


TARGETS: dict[str, Callable[[Path], Target]] = {name: globals()[name] for name in NAMES}
