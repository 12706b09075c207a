"""Kills a training at random times and compares its result with an uninterrupted training.

    python benchmarks/kill_and_resume.py --kills 20
    python benchmarks/kill_and_resume.py --steps 400 -- --source train.en --target train.de \
        --valid-source val.en --valid-target val.de --preset transformer-tiny

Trains a model twice, once without interruption and once with `kill -9` after random times. Compares
every array of the last checkpoints, the counters, the validations, the samples and the choice of
the best checkpoint. By default, trains a small model on generated dates. Options after `--` replace
this training with any other training of `keras-seq train`.

Also fails if fewer kills happened than requested, or if most processes ended before their first
save, so that the training only restarted. `--start` is the minimum lifetime of a process.
"""

import argparse
import hashlib
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from keras_seq.text.dates import date_pairs

SMALL = {
    "model.num_encoder_layers": 1,
    "model.num_decoder_layers": 1,
    "model.units": 64,
    "model.feedforward_units": 128,
    "model.dropout": 0.2,
    "training.batch_tokens": 1024,
    "training.keep_checkpoints": 2,
}


def small_training(folder: Path, seed: int) -> list[str]:
    pairs = date_pairs(5000, seed=seed)
    (folder / "dates.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in pairs))
    settings = [f"--set={key}={value}" for key, value in SMALL.items()]
    return ["--pairs", str(folder / "dates.tsv"), "--preset", "transformer-tiny", *settings]


def latest_step(run: Path) -> int:
    pointer = run / "checkpoints" / "latest"
    return int(pointer.read_text().strip().split("-")[-1]) if pointer.exists() else 0


def what_is_left(run: Path) -> dict[str, Any]:
    """Everything in a finished run that does not depend on the clock."""
    checkpoints = run / "checkpoints"
    last = checkpoints / (checkpoints / "latest").read_text().strip()
    state = json.loads((last / "state.json").read_text())
    validations = [
        {key: value for key, value in line.items() if "minutes" not in key}
        for line in map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
        if line["kind"] == "validation"
    ]
    return {
        **{
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in last.glob("*.safetensors")
        },
        # Progress is logged by time, so the number of log lines differs.
        "counters": {key: state[key] for key in state.keys() - {"minutes", "log_sizes"}},
        "validations": validations,
        "samples": (run / "samples.txt").read_text(),
        "best": (checkpoints / "best").read_text(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--steps", type=int, default=600, help="updates of the training")
    parser.add_argument("--checkpoint-every", type=int, default=10)
    parser.add_argument("--validate-every", type=int, default=100)
    parser.add_argument("--start", type=float, default=8.0, help="seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("training", nargs="*", help="options of keras-seq train, after --")
    options = parser.parse_args()
    generator = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        training = [
            *(options.training or small_training(folder, options.seed)),
            f"--set=training.checkpoint_every={options.checkpoint_every}",
            f"--set=training.validate_every={options.validate_every}",
            f"--max-steps={options.steps}",
        ]

        def command(name: str) -> list[str]:
            return [sys.executable, "-m", "keras_seq", "train", str(folder / name), *training]

        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        begin = time.monotonic()
        subprocess.run(command("straight"), check=True, **silent)
        seconds = time.monotonic() - begin
        longest = options.start + 2 * max(1.0, seconds - options.start) / options.kills
        print(f"{seconds:.0f} s in one piece; lives of {options.start:.0f} to {longest:.0f} s")
        reached = [0]
        while len(reached) <= options.kills:
            process = subprocess.Popen(command("killed"), **silent)
            life = generator.uniform(options.start, longest)
            try:
                process.wait(life)
                break
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                reached.append(latest_step(folder / "killed"))
                print(f"killed after {life:.1f} s; last checkpoint {reached[-1]:,}", flush=True)
        subprocess.run(command("killed"), check=True, **silent)
        straight, killed = (what_is_left(folder / name) for name in ("straight", "killed"))
    kills = len(reached) - 1
    saved = sum(later > earlier for earlier, later in zip(reached, reached[1:], strict=False))
    different = [
        key for key in straight.keys() | killed.keys() if straight.get(key) != killed.get(key)
    ]
    print(
        f"{kills} kills of {options.kills}, {saved} of them after a save of that life; "
        f"{options.steps} updates; {len(straight['validations'])} validations: "
        + (f"DIFFERENT: {', '.join(sorted(different))}" if different else "the same")
    )
    return int(bool(different) or kills < options.kills or 2 * saved < kills)


if __name__ == "__main__":
    sys.exit(main())
