"""Trains a language model on lines of text and completes lines, in Python.

    python examples/language_model.py [--steps 400]

The lines are sums, "7 + 8 = 1 5". The result depends on everything before the equals sign, so
letter frequencies alone cannot predict it. Replace the sums with any file of lines.
"""

import argparse
import random
import tempfile
from pathlib import Path

import keras_seq


def lines(count: int, seed: int) -> list[str]:
    """Samples sums with spaces between letters, so that each letter is a token."""
    numbers = random.Random(seed)
    sums = []
    for _ in range(count):
        first, second = numbers.randrange(10), numbers.randrange(10)
        sums.append(" ".join(f"{first}+{second}={first + second}"))
    return sums


def is_right(answer: str) -> bool:
    """Tests whether the number after the equals sign is the sum."""
    left, _, end = answer.partition("=")
    return str(sum(map(int, left.split("+")))) == end


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "sums.txt"
        text.write_text("".join(f"{line}\n" for line in lines(20_000, seed=1)))
        settings = keras_seq.load_settings(
            preset="lm-gru",
            overrides={
                "data.text": str(text),
                "model.units": 128,
                "model.embedding_units": 64,
                "model.dropout": 0.1,
                "training.max_steps": arguments.steps,
                "training.validate_every": 200,
                "training.ema": 0.98,
                "training.warmup_steps": 100,
            },
        )
        result = keras_seq.train(settings, f"{folder}/run")
        # Beam search returns the most probable continuation of each sum.
        generator = keras_seq.Generator.load(f"{folder}/run", method="beam", beam_size=2)

    print(f"{result.metric} {result.best:.2f}")
    tasks = [f"{first} + {second} =" for first in range(10) for second in range(10)]
    answers = [text.replace(" ", "") for text in generator(tasks)]
    for answer in answers[::17]:
        print(answer)
    right = sum(is_right(answer) for answer in answers)
    print(f"{right} of {len(tasks)} sums right")


if __name__ == "__main__":
    main()
