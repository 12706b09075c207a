"""Sentences a second in translation, batches of 32 and of 1, on Multi30k's validation text.

    python benchmarks/decoding_speed.py runs/ende --beam-size 5

The model is loaded and the search traced before the clock starts.
"""

import argparse
import os
import time

import machine

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run")
    parser.add_argument("--beam-size", type=int, default=5)
    parser.add_argument("--lines", type=int, default=512)
    parser.add_argument("--single-lines", type=int, default=64)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()

    from keras_seq import Translator
    from keras_seq.text import read_lines

    lines = list(read_lines(machine.multi30k() / "val.en.gz"))[: arguments.lines]
    print(machine.describe())
    for size, count in ((32, arguments.lines), (1, arguments.single_lines)):
        translator = Translator.load(arguments.run, beam_size=arguments.beam_size, batch_size=size)
        translator(lines[: 2 * size])
        rates, processor = [], []
        for _ in range(arguments.repeat):
            wall, cpu = time.perf_counter(), time.process_time()
            translator(lines[:count])
            rates.append(count / (time.perf_counter() - wall))
            processor.append(count / (time.process_time() - cpu))
        print(
            f"beam {arguments.beam_size}, batch {size:2}: sentences / s "
            + " ".join(f"{rate:.1f}" for rate in rates)
            + "; of processor time "
            + " ".join(f"{rate:.1f}" for rate in processor)
        )


if __name__ == "__main__":
    main()
