"""Settings of a small corpus that takes a moment to prepare."""

import pytest
from preparation.lines import LINES

from keras_seq.settings import load_settings


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "pairs.tsv").write_text(LINES)
    return load_settings(
        overrides={"data.pairs": str(tmp_path / "pairs.tsv"), "tokenizer.kind": "unigram"}
    )
