"""Measures the seconds from the start of a process to its first translated sentence.

python benchmarks/first_translation.py runs/ende
"""

import argparse
import subprocess
import sys
import time

import machine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run")
    parser.add_argument("--sentence", default="A dog runs.")
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    print(machine.describe())
    command = [sys.executable, "-m", "keras_seq", "translate", arguments.run, arguments.sentence]
    seconds = []
    for _ in range(arguments.repeat):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        seconds.append(time.perf_counter() - start)
    print("seconds to the first translation " + " ".join(f"{s:.2f}" for s in seconds))


if __name__ == "__main__":
    main()
