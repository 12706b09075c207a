"""Measures translation speed on Multi30k's validation text, with batches of 32 and of 1.

    python benchmarks/decoding_speed.py runs/ende --beam-size 5
    python benchmarks/decoding_speed.py runs/ende --max-length 50 --max-length 1000

The model is loaded and the search traced before the clock starts. `--max-length` sets one length
limit for all targets; several limits take turns. The speed should not depend on the limit.
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
    parser.add_argument("--max-length", type=int, action="append", default=[])
    arguments = parser.parse_args()
    from keras_seq.operating_system import usable_cores
    from keras_seq.process.threads import configure_threads

    # The default of `keras-seq translate`.
    configure_threads(usable_cores())

    from keras_seq import Translator
    from keras_seq.text import read_lines

    lines = list(read_lines(machine.multi30k() / "val.en.gz"))[: arguments.lines]
    print(machine.describe())
    for size, count in ((32, arguments.lines), (1, arguments.single_lines)):
        translators = {}
        for longest in arguments.max_length or [None]:
            limits = {}
            if longest is not None:
                limits = {"max_length": longest, "max_length_extra": longest, "max_length_ratio": 0}
            translators[longest] = Translator.load(
                arguments.run, beam_size=arguments.beam_size, batch_size=size, **limits
            )
            translators[longest](lines[: 2 * size])
        rates = {longest: [] for longest in translators}
        processor = {longest: [] for longest in translators}
        for _ in range(arguments.repeat):
            for longest, translator in translators.items():
                wall, cpu = time.perf_counter(), time.process_time()
                translator(lines[:count])
                rates[longest].append(count / (time.perf_counter() - wall))
                processor[longest].append(count / (time.process_time() - cpu))
        for longest in translators:
            print(
                f"beam {arguments.beam_size}, batch {size:2}"
                + (f", at most {longest} tokens" if longest else "")
                + ": sentences / s "
                + " ".join(f"{rate:.1f}" for rate in rates[longest])
                + "; of processor time "
                + " ".join(f"{rate:.1f}" for rate in processor[longest])
            )


if __name__ == "__main__":
    main()
