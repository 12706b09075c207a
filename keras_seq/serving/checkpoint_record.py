"""`checkpoint.json` of an export: the checkpoints that its weights come from."""

from __future__ import annotations

import json
from collections.abc import Sequence

from keras_seq.run import Run

RECORD_NAME = "checkpoint.json"


def checkpoint_record(runs: Sequence[Run]) -> bytes:
    """Returns the content of `checkpoint.json`: name and step of each run, in ensemble order."""
    record = {"runs": [{"name": run.path.resolve().name, "step": run.loaded_step} for run in runs]}
    return (json.dumps(record, ensure_ascii=False, indent=1) + "\n").encode()
