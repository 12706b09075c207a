"""Hostile requests and recordings for the small server of `keras_seq.runtime`."""

import io
import subprocess
import sys
import tracemalloc
import zipfile

import httpx
import numpy as np
import pytest
from golden_archive import unpack

from keras_seq import runtime

pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")


@pytest.fixture
def sounds():
    """A model that only reads recordings; it is not made from an export."""
    model = object.__new__(runtime.SoundModel)
    model.sample_rate = 16_000
    return model


@pytest.mark.parametrize(
    "instance",
    [["x" * 100_000, *[""] * 1500], [[0.5], [0.5]], [0.5, "0.5"], [0.5, None], [True], "0.5", 0.5],
    ids=lambda value: repr(value)[:20],
)
def test_recordings_are_flat_lists_of_numbers(sounds, instance):
    """An array of text takes, for each entry, as much as the longest."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="expected a list of samples"):
            sounds.parse(instance)
        assert tracemalloc.get_traced_memory()[1] < 1e6
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(sounds.parse([0, 0.5, -1]), np.array([0, 0.5, -1], np.float32))


def zipped():
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("a", b"b")
    return content.getvalue()


@pytest.mark.parametrize(
    "content",
    [b"PK\3\4 no archive", zipped(), b"\x93NUMPY\1\0\x20\0{'fortran_order': (, " + b" " * 11, b""],
    ids=["archive", "empty archive", "header", "empty"],
)
def test_damaged_arrays_are_one_line(sounds, tmp_path, content):
    path = tmp_path / "a.npy"
    path.write_bytes(content)
    with pytest.raises(runtime.RuntimeInputError, match="not a recording") as error:
        sounds.read(str(path))
    assert "\n" not in str(error.value)


@pytest.mark.process
def test_requests_of_web_pages_are_refused(tmp_path):
    export = unpack("formats-1.tar.xz", tmp_path) / "onnx"
    with subprocess.Popen(
        [sys.executable, "-m", "keras_seq.runtime", export, "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            url = process.stderr.readline().strip()
            host = url.removeprefix("http://")
            body = {"instances": ["a"]}
            for headers in (
                {"Host": "evil.example"},
                {"Host": f"evil.example:{host.rpartition(':')[2]}"},
                {"Origin": "http://evil.example"},
                {"Origin": "null"},
                {"Sec-Fetch-Site": "cross-site"},
                {"Content-Type": "text/plain"},
                {"Content-Type": "multipart/form-data; boundary=x"},
            ):
                answer = httpx.post(url, json=body, headers=headers)
                assert answer.status_code == 403, headers
                assert set(answer.json()) == {"error"}
            for headers in (
                {},
                {"Host": "localhost"},
                {"Origin": f"http://{host}"},
                {"Sec-Fetch-Site": "same-origin"},
                {"Content-Type": "application/x-www-form-urlencoded"},
            ):
                answer = httpx.post(url, json=body, headers=headers)
                assert answer.status_code == 200, headers
        finally:
            process.kill()
