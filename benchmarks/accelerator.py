"""Measures the speed of an accelerator in training, as a share of its peak, and in beam search.

    python benchmarks/accelerator.py --backend jax --preset transformer-big
    python benchmarks/accelerator.py --backend torch --preset transformer-base --beam-size 5
    python benchmarks/accelerator.py --backend jax --preset transformer-base --devices 8

Runs full updates with `fit`, including Adam, for the shape of a preset and a vocabulary of 32,000.
The batches contain random ids in rows of equal length, so there is no padding and no text is
needed. The moving average of the weights is off. Reports the median over windows of updates,
without the first window, in which the backend compiles.

The operation count covers matrix products only, three times those of a forward pass. Recomputed
and masked operations do not count. Peak values are the vendors' figures for dense bfloat16
products; `--peak` sets the peak of an unknown device.

With `--beam-size`, the search of targets of the same length follows, in one batch and with the
random weights of this training. The end token is allowed at the last step only, so all searches
have equal work.
"""

import argparse
import json
import os
import statistics
import sys
import time

# Peak of dense bfloat16 products in TFLOP/s, from the data sheets of NVIDIA and Google.
PEAKS = {
    "NVIDIA H200": 989.0,
    "NVIDIA H100 80GB HBM3": 989.0,
    "NVIDIA A100": 312.0,
    "NVIDIA L4": 121.0,
    "NVIDIA L40S": 362.0,
    "TPU v4": 275.0,
    "TPU v5 lite": 197.0,
    "TPU v5p": 459.0,
    "TPU v6 lite": 918.0,
}


def operations(model, rows, source, target, vocabulary):
    """Floating-point operations of an update of a Transformer."""
    units, inner = model.units, model.feedforward_units
    weights = 4 * units**2 + 2 * units * inner
    encoder = model.num_encoder_layers * source * (2 * weights + 4 * source * units)
    crossing = 4 * units**2 * source + 4 * units**2 * target + 4 * source * target * units
    decoder = model.num_decoder_layers * (target * (2 * weights + 4 * target * units) + crossing)
    return 3 * rows * (encoder + decoder + 2 * target * units * vocabulary)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--preset", default="transformer-base")
    parser.add_argument("--backend", choices=["jax", "tensorflow", "torch"], default="jax")
    parser.add_argument("--device", choices=["cpu", "gpu", "tpu"])
    parser.add_argument("--devices", type=int)
    parser.add_argument("--model-devices", type=int, default=1)
    parser.add_argument("--precision", default="bfloat16")
    parser.add_argument("--batch-tokens", type=int, default=25_000, help="target tokens, each host")
    parser.add_argument("--length", type=int, default=32, help="steps of source and of target")
    parser.add_argument("--window", type=int, default=20, help="updates timed together")
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--beam-size", type=int, help="measure beam search too")
    parser.add_argument("--sentences", type=int, default=256, help="sources of the search")
    parser.add_argument("--peak", type=float, help="1e12 operations a second of one device")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    os.environ["KERAS_BACKEND"] = options.backend
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

    # Must run before TensorFlow is imported, as in `keras-seq train`.
    from keras_seq.process.threads import configure_training_threads

    if options.backend == "tensorflow" and options.device != "gpu" and options.devices is None:
        configure_training_threads()
    import keras
    import numpy as np

    from keras_seq import Devices, backend, load_settings
    from keras_seq.cluster import start_cluster
    from keras_seq.run.models import build_model
    from keras_seq.training.optimizer import compile_model
    from keras_seq.training.precision import dtype_policy
    from keras_seq.training.setup import run_fit

    settings = load_settings(
        preset=options.preset,
        overrides=["training.ema=0", f"training.precision={options.precision}", *options.set],
    )
    devices = Devices(options.device, options.devices, options.model_devices)
    cluster = start_cluster(devices, print)
    vocabulary, length = settings.tokenizer.size, options.length
    rows = -(-options.batch_tokens // (length * cluster.row_multiple)) * cluster.row_multiple
    generator = np.random.default_rng(0)
    ids = generator.integers(4, vocabulary, (2, rows, length), dtype=np.int32)
    weights = np.full(rows, 1 / (rows * length), np.float32)
    batch = ({"source": ids[0], "target": ids[1]}, ids[1], weights)
    with cluster.scope():
        keras.utils.set_random_seed(1)
        model = build_model(settings, vocabulary, vocabulary, dtype_policy(options.precision))
        compile_model(model, settings)

        def window(count):
            begin = time.perf_counter()
            repeated = (batch for _ in range(count))
            run_fit(cluster, model, lambda: repeated, batch, steps_per_epoch=count)
            # Reading a variable waits for the computation.
            backend.to_numpy(model.optimizer.iterations)
            return (time.perf_counter() - begin) / count

        compiling = window(options.window)
        seconds = statistics.median(window(options.window) for _ in range(options.windows))
        searching = search_speed(model, ids[0], options) if options.beam_size else {}
    kind = describe(options.backend)
    count = max(1, cluster.row_multiple * options.model_devices)
    done = operations(settings.model, rows, length, length, vocabulary) / seconds
    peak = options.peak or next((p for name, p in PEAKS.items() if kind.startswith(name)), None)
    if peak is None:
        print(f"peak of {kind!r} unknown: give it by --peak, in 1e12", file=sys.stderr)
    figures = {
        "device": kind,
        "devices": count,
        "backend": options.backend,
        "precision": options.precision,
        "preset": options.preset,
        "parameters": int(model.count_params()),
        "batch": [rows, length, length],
        "milliseconds_an_update": round(seconds * 1000, 2),
        "target_tokens_per_second": round(rows * length / seconds),
        "operations_per_second_1e12": round(done / 1e12, 3),
        "share_of_peak": round(done / 1e12 / (peak * count), 4) if peak else None,
        "first_window_seconds": round(compiling * options.window, 1),
        **searching,
    }
    print(json.dumps(figures, indent=1))


def search_speed(model, source, options):
    """Sentences per second of beam search, the median of three searches after a first one."""
    import numpy as np

    from keras_seq.search import generate

    source = np.resize(source, (options.sentences, options.length))

    def search():
        begin = time.perf_counter()
        generate(
            model,
            source,
            batch_size=options.sentences,
            beam_size=options.beam_size,
            min_length=options.length,
            max_length=options.length,
        )
        return time.perf_counter() - begin

    compiling = search()
    seconds = statistics.median(search() for _ in range(3))
    return {
        "beam_size": options.beam_size,
        "sentences": options.sentences,
        "sentences_per_second": round(options.sentences / seconds, 1),
        "first_search_seconds": round(compiling, 1),
    }


def describe(name):
    """Name of the device, as reported by the driver."""
    if name == "jax":
        import jax

        return jax.devices()[0].device_kind
    if name == "torch":
        import torch

        return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    details = tf.config.experimental.get_device_details(gpus[0]) if gpus else {}
    return details.get("device_name", "cpu")


if __name__ == "__main__":
    main()
