"""Damaged and hostile exports for `keras_seq.litert` are one clear line.

The export is that of `golden/formats-1.tar.xz`, because an export takes long to make.
"""

import json
import os
import random
import shutil
import zipfile

import pytest
from golden_archive import unpack

from keras_seq import litert, runtime


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    return unpack("formats-1.tar.xz", tmp_path_factory.mktemp("formats"))


def rewritten(path, **entries):
    """Writes an export to LiteRT again with other entries of `model.json`."""
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files["model.json"] = json.dumps(json.loads(files["model.json"]) | entries).encode()
    path.write_bytes(content[: content.index(b"PK\3\4")])
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, file in files.items():
            archive.writestr(name, file)


@pytest.fixture
def lite(golden, tmp_path):
    pytest.importorskip("ai_edge_litert", reason="the extra litert is not installed")
    return shutil.copyfile(golden / "lite.tflite", tmp_path / "a.tflite")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"max_length": "5"}, "max_length: received '5', expected an integer from 1 to"),
        ({"max_length": 9999}, "damaged: the input 'source' has the shape"),
        ({"continues": 1}, "continues: received 1, expected true or false"),
        ({"labels": ["a\nb"]}, "labels: received"),
        ({"target": []}, "target: received [], expected an object"),
        ({"task": "classify"}, "labels: missing, expected a list"),
        ({"task": "classify", "labels": ["a"]}, "a.tflite: damaged: it lacks probabilities"),
        ({"filler": " " * (65 << 20)}, "model.json: expected at most 67,108,864 bytes"),
    ],
)
def test_wrong_litert_export_is_one_line(lite, entries, message):
    rewritten(lite, **entries)
    with pytest.raises(runtime.RuntimeInputError) as error:
        litert.load(lite)(["a " * 9999])
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_litert_pipe_is_refused_instead_of_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.tflite")
    with pytest.raises(runtime.RuntimeInputError, match="it is not a regular file"):
        litert.load(tmp_path / "a.tflite")


def test_archive_of_an_unknown_version_of_zip_is_one_line(lite):
    content = bytearray(lite.read_bytes())
    # The version that a reader needs, in the directory at the end of the archive.
    content[content.index(b"PK\1\2") + 6] = 99
    lite.write_bytes(content)
    with pytest.raises(
        runtime.RuntimeInputError, match="not an export to LiteRT: zip file version"
    ):
        litert.load(lite)


def test_damaged_archive_of_a_litert_export_is_one_line(lite):
    content = lite.read_bytes()
    start = content.index(b"PK\3\4")
    generator = random.Random(5)
    refused = 0
    for _ in range(60):
        changed = bytearray(content)
        # Most places are in the vocabulary, so that half are in the directory at the end.
        least = generator.choice([start, len(content) - 300])
        changed[generator.randrange(least, len(content))] ^= 1 << generator.randrange(8)
        lite.write_bytes(changed)
        try:
            litert.load(lite)
        except runtime.RuntimeInputError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 20
