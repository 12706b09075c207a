"""A folder of models as `tools/make_pretrained.py` writes it, made of runs of the tests."""

import json

from keras_seq.run import Run
from keras_seq.run.pretrained_models import digest
from keras_seq.run.sharing import public_copy


def add_model(folder, name, run):
    """Puts a copy of a run into a folder of models, with its entry in the index."""
    directory = folder / name
    public_copy(Run.open(run), directory).unlock()
    entry = {
        "task": "dates to ISO 8601",
        "data": "made for this test",
        "license": "CC0",
        "citation": "Doe 2020",
        "metric": "exact",
        "score": 12.5,
        "examples": 1200,
        "size": 2_300_000,
        "digest": digest(directory),
        "shared": True,
    }
    index = folder / "index.json"
    entries = json.loads(index.read_text()) if index.exists() else {}
    index.write_text(json.dumps(entries | {name: entry}))
