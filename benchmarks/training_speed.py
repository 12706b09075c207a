"""Target tokens a second in training: forward, backward and update, on Multi30k.

    python benchmarks/training_speed.py --preset transformer-small --updates 40

Real tokens are counted, padding is not. The first updates, which trace the
graph, are left out. Prints the median over windows of ten updates, wall and
processor time.
"""

import argparse
import os
import resource
import statistics
import tempfile
import time

import machine

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--preset", default="transformer-small")
    parser.add_argument("--updates", type=int, default=40)
    parser.add_argument("--warm-up", type=int, default=10)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    folder = machine.multi30k()

    from keras_seq.preparation import prepare_run
    from keras_seq.settings import load_settings

    files = {
        f"{prefix}{side}": str(folder / f"{split}.{language}.gz")
        for split, prefix in (("train", ""), ("val", "valid_"))
        for side, language in (("source", "en"), ("target", "de"))
    }
    settings = load_settings(
        preset=arguments.preset,
        overrides=[*arguments.set, *(f"data.{key}={path}" for key, path in files.items())],
    )
    with tempfile.TemporaryDirectory() as temporary:
        run = prepare_run(settings, f"{temporary}/run")
        print(machine.describe())
        print(f"preset {arguments.preset} {' '.join(arguments.set)}")
        measure(run, arguments.updates, arguments.warm_up)


def measure(run, updates: int, warm_up: int) -> None:
    """Trains on the run's batches and prints the rates."""
    import keras
    import numpy as np

    from keras_seq import backend
    from keras_seq.modelling import build_run_model
    from keras_seq.training.feed import fit_batch, training_stream
    from keras_seq.training.optimizer import compile_model

    stream = training_stream(run)
    model = build_run_model(run)
    compile_model(model, run.settings)
    total = updates + warm_up
    counts = [int(np.count_nonzero(stream.batch(k)["target_output"])) for k in range(total)]

    def batches():
        for k in range(total):
            yield fit_batch(stream, k)

    class Clock(keras.callbacks.Callback):
        def __init__(self):
            super().__init__()
            self.wall, self.cpu = [time.perf_counter()], [time.process_time()]

        def on_train_batch_end(self, batch, logs=None):
            self.wall.append(time.perf_counter())
            self.cpu.append(time.process_time())

    clock = Clock()
    model.fit(
        backend.batch_feed(batches, next(batches())),
        steps_per_epoch=total,
        verbose=0,
        shuffle=False,
        callbacks=[clock],
    )
    windows = range(warm_up, total, 10)
    spans = [(start, min(start + 10, total)) for start in windows]
    wall = [sum(counts[a:b]) / (clock.wall[b] - clock.wall[a]) for a, b in spans]
    cpu = [sum(counts[a:b]) / (clock.cpu[b] - clock.cpu[a]) for a, b in spans]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"backend                                {backend.name()}")
    print(f"parameters                             {model.count_params():,}")
    print(f"first update, tracing included         {clock.wall[1] - clock.wall[0]:.1f} s")
    print(f"target tokens / s                      {statistics.median(wall):,.0f}")
    print(f"  lowest, highest window               {min(wall):,.0f} {max(wall):,.0f}")
    print(f"target tokens / s of processor time    {statistics.median(cpu):,.0f}")
    print(f"peak resident memory                   {peak:.2f} GiB")


if __name__ == "__main__":
    main()
