"""Measures and plots how cost grows with batch size, sequence length and model size.

    python benchmarks/cost_growth.py --figure benchmarks/cost_growth.svg

Training runs full updates with `benchmarks/accelerator.py` on the CPU, in float32, on random
ids without padding, with a separate process for each setting. Decoding uses the shape of
`transformer-small` with new weights, beam 5, eight sentences of 15 tokens and a fixed target
length.
"""

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import machine

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
BATCHES = (256, 1024, 4096, 16384)
LENGTHS = (16, 32, 64, 128, 256, 512, 1024)
PRESETS = ("transformer-tiny", "transformer-small", "transformer-base")
SENTENCES, SOURCE, VOCABULARY = 8, 15, 8000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--figure", type=Path, help="an .svg or .png to write")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    print(machine.describe())
    small = "transformer-small"
    by_batch = [trained(small, tokens, 32, options.repeat) for tokens in BATCHES]
    show("training, by target tokens a batch of length 32", BATCHES, by_batch)
    by_length = [trained(small, 4096, length, options.repeat) for length in LENGTHS]
    show("training, by length, 4,096 target tokens a batch", LENGTHS, by_length)
    by_model = [trained(preset, 4096, 32, options.repeat) for preset in PRESETS]
    show("training, by preset, 4,096 target tokens of length 32", PRESETS, by_model)
    decoding = decoded(options.repeat)
    print("\ndecoding, by length: ms a sentence, ms a token of a sentence")
    for length, seconds in zip(LENGTHS, decoding, strict=True):
        each = 1000 * seconds / SENTENCES
        print(f"  {length:5}  {each:9.1f}  {each / length:7.3f}")
    if options.figure:
        draw(options.figure, by_batch, by_length, by_model, decoding)


def trained(preset: str, tokens: int, length: int, windows: int) -> dict:
    """Runs `accelerator.py` with one setting and returns its figures."""
    program = Path(__file__).with_name("accelerator.py")
    command = [sys.executable, str(program), "--backend=tensorflow", "--precision=float32"]
    command += [f"--preset={preset}", f"--batch-tokens={tokens}", f"--length={length}"]
    # Every window has about the same number of tokens.
    window = max(2, 16384 // tokens)
    command += [f"--window={window}", f"--windows={windows}", f"--set=tokenizer.size={VOCABULARY}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return json.loads(done.stdout)


def show(title: str, settings: tuple, figures: list[dict]) -> None:
    print(f"\n{title}: parameters, ms an update, target tokens/s, GFLOP/s")
    for setting, one in zip(settings, figures, strict=True):
        print(
            f"  {setting!s:18}  {one['parameters']:>11,}  {one['milliseconds_an_update']:>9,.1f}  "
            f"{one['target_tokens_per_second']:>7,}  {1000 * one['operations_per_second_1e12']:.0f}"
        )
    sys.stdout.flush()


def decoded(repeat: int) -> list[float]:
    """Returns the seconds to decode all sentences, for each target length."""
    from keras_seq.process.threads import configure_threads

    # One search at a time, with one thread.
    configure_threads(1)

    import numpy as np

    from keras_seq import backend
    from keras_seq.models import Transformer
    from keras_seq.search import beam_search

    model = Transformer(
        VOCABULARY,
        VOCABULARY,
        num_encoder_layers=3,
        num_decoder_layers=3,
        units=256,
        feedforward_units=1024,
        num_heads=4,
        share_embeddings=True,
        seed=1,
    )
    source = np.random.default_rng(1).integers(4, VOCABULARY, (SENTENCES, SOURCE), dtype=np.int32)
    medians = []
    for length in LENGTHS:
        limits = {"min_length": length, "max_length": length, "max_length_extra": length}
        find = functools.partial(beam_search, model, beam_size=5, max_length_ratio=0.0, **limits)
        search = backend.compiled(find, model.variables, [2])
        assert backend.to_numpy(search(source).lengths).min() == length
        seconds = []
        for _ in range(repeat):
            begin = time.perf_counter()
            backend.to_numpy(search(source).lengths)
            seconds.append(time.perf_counter() - begin)
        medians.append(statistics.median(seconds))
    return medians


def draw(path: Path, by_batch: list, by_length: list, by_model: list, decoding: list) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    # Makes the SVG file reproducible.
    pyplot.rcParams["svg.hashsalt"] = "keras-seq"
    figure, axes = pyplot.subplots(2, 2, figsize=(9, 7), layout="constrained")
    for axis, title, xs, found in (
        (axes[0, 0], "training, by tokens a batch", BATCHES, by_batch),
        (axes[0, 1], "training, by length", LENGTHS, by_length),
        (axes[1, 0], "training, by parameters", [m["parameters"] for m in by_model], by_model),
    ):
        axis.loglog(xs, [one["target_tokens_per_second"] for one in found], "o-", base=2)
        axis.set(title=title, ylabel="target tokens / s")
    each = [1000 * seconds / SENTENCES for seconds in decoding]
    axes[1, 1].loglog(LENGTHS, each, "o-", base=2, label="measured")
    straight = [each[0] * length / LENGTHS[0] for length in LENGTHS]
    axes[1, 1].loglog(LENGTHS, straight, ":", base=2, label="in proportion")
    axes[1, 1].set(title="decoding, beam 5, by length", ylabel="ms / sentence")
    axes[1, 1].legend()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


if __name__ == "__main__":
    main()
