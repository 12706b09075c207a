"""Compares keras-seq with other tools: training, decoding and startup, in one command.

    python benchmarks/peers/compare.py --work ~/peers
    python benchmarks/peers/compare.py --work ~/peers --part training --only keras-seq opennmt-tf

Parts:

    training   target tokens per second of full updates of `transformer-small`
    rnn        the same for a recurrent model, with the tools that support this model
    decoding   sentences per second, beam 5 in batches of 32 and of 1, greedy in batches of 32
    start      time from process start to the first translated sentence and to the first update
    ceiling    speed of matrix products on this machine; the training parts always measure it

All models of a part have the same shape and use the tokens of Multi30k, in keras-seq's vocabulary
of 8,000. keras-seq and the plain loops train on the same batches. OpenNMT-tf and JoeyNMT read the
tokens as words and build batches of the same size with their own pipelines. Target tokens include
the end token and exclude padding. Dropout is 0.1 (rnn: 0.2), label smoothing 0.1, the optimizer
Adam. Only keras-seq also clips the gradient and averages the weights, as its presets do.

Each contestant is a process that keeps its model. Contestants take turns and only one computes at a
time, so other load affects all of them equally. The first turn of each contestant is not counted.
Figures are medians over turns; memory is the peak resident memory. The part `training` keeps eight
models in memory, about 17 GB. All files are written to `--work`; see `decoding.py` for the
environments. `--smoke` tests the script with keras-seq only, a tiny model and dates as text.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import ceiling  # noqa: E402
import machine  # noqa: E402
from contest import compete  # noqa: E402
from decoders import DECODERS, Column  # noqa: E402
from decoding import decode  # noqa: E402
from environments import SkippedError  # noqa: E402
from runs import train_once, trained  # noqa: E402
from start import start_training, start_translating  # noqa: E402
from trainers import TRAINERS  # noqa: E402
from training import train  # noqa: E402

PARTS = ("training", "rnn", "decoding", "start", "ceiling")
NAMES = list(dict.fromkeys([*DECODERS, *TRAINERS["transformer"]]))
TINY = {
    "tokenizer.size": 500,
    "model.num_encoder_layers": 1,
    "model.num_decoder_layers": 1,
    "model.units": 16,
    "model.feedforward_units": 32,
    "model.num_heads": 2,
    "training.batch_tokens": 256,
    "training.sample_count": 0,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder for what is made")
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--repeat", type=int, default=5, help="turns of each, and starts")
    parser.add_argument("--batches", type=int, default=10, help="trained on in a turn")
    parser.add_argument("--warm-up", type=int, default=10, help="batches of the first turn")
    parser.add_argument("--lines", type=int, default=512, help="decoded in batches; singly: 1 in 8")
    parser.add_argument("--smoke", action="store_true", help="a trial in seconds")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    arguments.sizes = list(ceiling.SIZES)
    columns, forms = [Column(5, 32), Column(5, 1), Column(1, 32)], None
    begin = time.perf_counter()
    print(machine.describe(), flush=True)
    try:
        if arguments.smoke:
            make_tiny(arguments)
            columns, forms = columns[:1], 1
        trained(arguments.work)
    except SkippedError as reason:
        raise SystemExit(f"no run to begin with: {reason}") from None
    products = []
    if "training" in arguments.part:
        products += train(arguments, "transformer", forms)
    if "rnn" in arguments.part:
        products += train(arguments, "rnn", forms)
    if "ceiling" in arguments.part and not products:
        entrants = [ceiling.worker_of(arguments.sizes)]
        found = compete(arguments.work, entrants, ceiling.turn, arguments.repeat)
        products = found[ceiling.NAME]
    if products:
        ceiling.show_ceiling(products)
    if "decoding" in arguments.part:
        decode(arguments, columns, forms)
    if "start" in arguments.part:
        start_translating(arguments, forms)
        # The smoke test skips this part, because a second tracing would take most of its time.
        if not arguments.smoke:
            start_training(arguments)
    print(f"{(time.perf_counter() - begin) / 60:.1f} minutes; {machine.describe()}")


def make_tiny(arguments: argparse.Namespace) -> None:
    """Trains a tiny run on dates and reduces all options, only to test that the script works."""
    from keras_seq.text import date_pairs

    pairs = date_pairs(120, seed=1)
    files = []
    for side, name in enumerate(("source", "target")):
        lines = [pair[side] for pair in pairs]
        for split, some in (("train", lines[:100]), ("valid", lines[100:108])):
            file = arguments.work / f"{split}.{name}"
            file.write_text("".join(f"{line}\n" for line in some), "utf-8")
            files.append(f"--{'' if split == 'train' else 'valid-'}{name}={file}")
    (arguments.work / "test.source").write_text("".join(f"{p[0]}\n" for p in pairs[112:]), "utf-8")
    tiny = [f"--set={key}={value}" for key, value in TINY.items()]
    train_once(arguments.work / "run", *files, "--preset", "transformer-small", *tiny)
    arguments.sizes = ["64x64x64"]
    arguments.only = ["keras-seq"]
    arguments.part = [part for part in arguments.part if part != "rnn"]
    arguments.repeat = arguments.batches = arguments.warm_up = 1


if __name__ == "__main__":
    main()
