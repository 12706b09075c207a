"""Checks of the path of a new run."""

import os
from types import SimpleNamespace

import pytest

from keras_seq import operating_system
from keras_seq.run.checks import check_new
from keras_seq.text import InputError


@pytest.mark.skipif(not hasattr(os, "statvfs"), reason="the flags of a file system of POSIX")
@pytest.mark.parametrize("name", ["", "new", "new/deep"])
@pytest.mark.parametrize(
    ("flags", "message"),
    [(0, "permission denied"), (getattr(os, "ST_RDONLY", 1), "read-only file system")],
)
def test_the_reason_why_no_run_can_be_created_is_named(tmp_path, monkeypatch, name, flags, message):
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(operating_system.os, "statvfs", lambda _: SimpleNamespace(f_flag=flags))
    with pytest.raises(InputError) as error:
        check_new(tmp_path / name)
    assert str(error.value) == f"{tmp_path / name}: cannot be written: {message}"
    assert os.listdir(tmp_path) == []
