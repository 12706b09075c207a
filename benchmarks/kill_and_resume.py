"""Random kills of one training, and whether its end is that of the training that was never killed.

    python benchmarks/kill_and_resume.py --kills 20
    python benchmarks/kill_and_resume.py --steps 300 -- --source train.en --target train.de \\
        --valid-source val.en --valid-target val.de

Trains a model twice, once in one piece and once with `kill -9` after random times, and compares
every array of the last checkpoints. The model is a small one of the embedded dates, or that of
`keras-seq train` with the options after `--`.
"""

import argparse
import hashlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from keras_seq.text.dates import date_pairs

SMALL = {
    "model.num_encoder_layers": 1,
    "model.num_decoder_layers": 1,
    "model.units": 64,
    "model.feedforward_units": 128,
    "model.dropout": 0.2,
    "training.batch_tokens": 1024,
    "training.checkpoint_every": 10,
    "training.validate_every": 100,
    "training.keep_checkpoints": 2,
}


def small_training(folder: Path, seed: int) -> list[str]:
    pairs = date_pairs(5000, seed=seed)
    (folder / "dates.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in pairs))
    settings = [f"--set={key}={value}" for key, value in SMALL.items()]
    return ["--pairs", str(folder / "dates.tsv"), "--preset", "transformer-tiny", *settings]


def fingerprints(run: Path) -> dict[str, str]:
    checkpoints = run / "checkpoints"
    last = checkpoints / (checkpoints / "latest").read_text().strip()
    return {
        name: hashlib.sha256((last / name).read_bytes()).hexdigest()
        for name in ("weights.safetensors", "training.safetensors")
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("training", nargs="*", help="options of keras-seq train, after --")
    options = parser.parse_args()
    generator = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        training = options.training or small_training(folder, options.seed)
        training += ["--max-steps", str(options.steps)]

        def command(name: str) -> list[str]:
            return [sys.executable, "-m", "keras_seq", "train", str(folder / name), *training]

        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        begin = time.monotonic()
        subprocess.run(command("straight"), check=True, **silent)
        seconds = time.monotonic() - begin
        # A life is long enough to start and to save, and short enough for so many of them.
        shortest = 6.0
        longest = shortest + 2 * max(1.0, seconds - shortest) / options.kills
        kills = 0
        print(
            f"{seconds:.0f} s in one piece; lives of {shortest:.0f} to {longest:.0f} s", flush=True
        )
        while kills < options.kills:
            process = subprocess.Popen(command("killed"), **silent)
            try:
                process.wait(generator.uniform(shortest, longest))
                break
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills += 1
        subprocess.run(command("killed"), check=True, **silent)
        same = fingerprints(folder / "straight") == fingerprints(folder / "killed")
    print(f"{kills} kills, {options.steps} updates: {'the same' if same else 'DIFFERENT'} arrays")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
