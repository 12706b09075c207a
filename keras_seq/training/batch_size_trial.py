"""Process that tries whether the largest batches of a token budget fit into memory."""

from __future__ import annotations

import json
import sys

from keras_seq.cluster import start_cluster
from keras_seq.process.devices import Devices
from keras_seq.process.memory import is_out_of_memory
from keras_seq.run import Run
from keras_seq.training.errors import TrainingError
from keras_seq.training.setup import TrainingSetup

_UPDATES = 4


def main() -> int:
    """Tries a batch size; returns the exit code. Arguments: run, token budget, devices (JSON)."""
    path, budget, devices_json = sys.argv[1:]
    options = json.loads(devices_json)
    devices = Devices(**{**options, "hosts": tuple(options["hosts"])})
    run = Run.open(path, writable=False)
    training = run.settings.training
    update = {"batch_tokens": int(budget)}
    if training.effective_batch_tokens is not None:
        update["effective_batch_tokens"] = max(int(budget), training.effective_batch_tokens)
    training = training.model_copy(update=update)
    run.update_settings(run.settings.model_copy(update={"training": training}))
    try:
        cluster = start_cluster(devices, lambda line: None)
        with cluster.scope():
            setup = TrainingSetup(run, lambda line: None, cluster)
            setup.probe_largest_batches()
            # Later updates can run out of memory, because the memory is then fragmented.
            setup.fit(setup.batches, _UPDATES)
    except Exception as error:
        if is_out_of_memory(error):
            return 4
        sys.stderr.write(f"{type(error).__name__}: {' '.join(str(error).split())}\n")
        return error.exit_code if isinstance(error, TrainingError) else 1
    return 0
