r"""Measures training speed on Multi30k: forward pass, backward pass and update.

    python benchmarks/training_speed.py --preset transformer-small --updates 40
    python benchmarks/training_speed.py --preset transformer-small \
        --turn training.precision=float32 --turn training.precision=bfloat16

Counts real target tokens, without padding. The first batches, which trace the graph, are left out.
Prints the median over windows of ten batches, for wall time and processor time. Several turns
alternate windows in one process, so other load affects all of them equally.
"""

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time

import machine

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
WINDOW = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--preset", default="transformer-small")
    parser.add_argument("--updates", type=int, default=40, help="batches measured, of each turn")
    parser.add_argument("--warm-up", type=int, default=10)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument(
        "--turn", action="append", default=[], metavar="KEY=VALUE[,...]", help="may be repeated"
    )
    arguments = parser.parse_args()
    folder = machine.multi30k()

    from keras_seq.preparation import prepare_run
    from keras_seq.process.threads import configure_training_threads
    from keras_seq.settings import load_settings

    configure_training_threads()
    files = {
        f"{prefix}{side}": str(folder / f"{split}.{language}.gz")
        for split, prefix in (("train", ""), ("val", "valid_"))
        for side, language in (("source", "en"), ("target", "de"))
    }

    def settings_of(turn):
        overrides = [*arguments.set, *filter(None, turn.split(","))]
        data = [f"data.{key}={path}" for key, path in files.items()]
        return load_settings(preset=arguments.preset, overrides=[*overrides, *data])

    with tempfile.TemporaryDirectory() as temporary:
        run = prepare_run(settings_of(""), f"{temporary}/run")
        print(machine.describe())
        print(f"preset {arguments.preset} {' '.join(arguments.set)}")
        asked = {turn: settings_of(turn) for turn in arguments.turn or [""]}
        measure(run, asked, arguments.updates, arguments.warm_up)


def measure(run, asked, updates, warm_up):
    """Trains on the same batches with each setting and prints the speeds."""
    from keras_seq import backend
    from keras_seq.run import Run

    turns = {}
    for name, settings in asked.items():
        tokenizer = run.settings.tokenizer
        turns[name] = Turn(Run(run.path, settings.model_copy(update={"tokenizer": tokenizer})))
    for turn in turns.values():
        turn.first = turn.train(0, 1)[0]
        turn.train(1, warm_up)
    for start in range(warm_up, warm_up + updates, WINDOW):
        for turn in turns.values():
            turn.windows.append(turn.train(start, start + WINDOW))
    print(f"backend                                {backend.name()}")
    for name, turn in turns.items():
        if name:
            print(name)
        wall = [tokens / seconds for seconds, _, tokens in turn.windows]
        cpu = [tokens / seconds for _, seconds, tokens in turn.windows]
        print(f"parameters                             {turn.model.count_params():,}")
        print(f"first update, tracing included         {turn.first:.1f} s")
        print(f"target tokens / s                      {statistics.median(wall):,.0f}")
        print(f"  lowest, highest window               {min(wall):,.0f} {max(wall):,.0f}")
        print(f"target tokens / s of processor time    {statistics.median(cpu):,.0f}")
        print(f"  lowest, highest window               {min(cpu):,.0f} {max(cpu):,.0f}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak resident memory                   {peak:.2f} GiB")


def tell(line):
    """Prints to stderr, because another program may read the figures on stdout."""
    print(line, file=sys.stderr)


class Turn:
    """A model with its optimizer and batches."""

    def __init__(self, run):
        import keras

        from keras_seq.cluster import start_cluster
        from keras_seq.process.devices import Devices
        from keras_seq.run.models import build_run_model
        from keras_seq.settings import TASKS
        from keras_seq.training.feed import training_stream
        from keras_seq.training.optimizer import compile_model
        from keras_seq.training.precision import dtype_policy, resolve_precision

        self.cluster = start_cluster(Devices(), tell)
        resolve_precision(run, tell, self.cluster)
        keras.utils.set_random_seed(run.settings.seed)
        self.training = run.settings.training
        self.stream = training_stream(run)
        self.model = build_run_model(run, dtype_policy(self.training.precision))
        self.objective = TASKS[run.settings.task].objective(run.settings)
        self.train_model = self.objective.model(self.model)
        compile_model(self.train_model, run.settings, self.objective.loss(self.model))
        self.windows = []

    def train(self, start, stop):
        """Trains on batches `start` to `stop`; returns wall time, processor time and tokens."""
        from keras_seq.training.feed import fit_batches
        from keras_seq.training.state import restore_arrays, training_arrays

        count = self.training.micro_batches
        batches = [
            batch
            for update in range(start // count, -(-stop // count))
            for batch in fit_batches(self.stream, update, count, self.objective.fit_batch)
        ]
        batches = batches[start % count :][: stop - start]
        wall, cpu = time.perf_counter(), time.process_time()
        self.cluster.fit(
            self.train_model,
            # Keras accepts generators, but no other iterators.
            lambda: (batch for batch in batches),
            batches[0],
            steps_per_epoch=stop - start,
        )
        seconds = time.perf_counter() - wall, time.process_time() - cpu
        # `fit` sets the weights to their average. On JAX both then share a buffer, so copy it.
        restore_arrays(self.train_model, training_arrays(self.train_model))
        return *seconds, sum(map(self.objective.tokens, batches))


if __name__ == "__main__":
    main()
