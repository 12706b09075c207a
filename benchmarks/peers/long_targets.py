"""Measures how decoding cost grows with target length, in keras-seq and in CTranslate2.

    python benchmarks/peers/long_targets.py --work ~/peers

Both decode with the weights of the same run, in float32, with beam 5, one thread, batches of eight
sentences and a fixed target length. They take turns in one process. Prints medians in milliseconds
per target token of a sentence.
"""

from __future__ import annotations

import argparse
import functools
import os
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import machine  # noqa: E402
import worker  # noqa: E402
from runs import trained  # noqa: E402

from keras_seq.process.threads import configure_threads  # noqa: E402

LENGTHS = (16, 64, 128, 256, 512, 1024)
SENTENCES, SOURCE, BEAM = 8, 15, 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--length", type=int, action="append", help="may be given again")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    lengths = options.length or LENGTHS
    print(machine.describe())
    # One search at a time, with one thread.
    configure_threads(1)

    import numpy as np

    from keras_seq.run import Run
    from keras_seq.run.models import load_model
    from keras_seq.serving.ctranslate2_spec import make_spec, open_spec, vocabularies

    run = Run.open(trained(options.work))
    pieces, _ = vocabularies(run.source_tokenizer, run.target_tokenizer)
    model = load_model(run)
    # CTranslate2 computes a batch in one worker with one thread.
    peer = open_spec(make_spec(run, positions=max(lengths) + 1), "float32")
    source = np.random.default_rng(1).integers(4, len(pieces), (SENTENCES, SOURCE), dtype=np.int32)
    print("\n| target tokens | keras-seq | CTranslate2 | times as fast |\n|---|---|---|---|")
    for length in lengths:
        contestants = ours(model, source, length), theirs(peer, pieces, source, length)
        seconds: list[list[float]] = [[], []]
        for turn in range(1 + options.repeat):
            for decode, of_one in zip(contestants, seconds, strict=True):
                found, figures = worker.timed(decode)
                assert set(found) == {length}
                # The first turn is a warm-up.
                of_one += [figures["seconds"]] if turn else []
        own, other = (1000 * statistics.median(one) / SENTENCES / length for one in seconds)
        print(f"| {length:,} | {own:.2f} | {other:.2f} | {other / own:.2f} |", flush=True)


def ours(model, source, length):
    """Builds a function that decodes with keras-seq and returns the target lengths."""
    from keras_seq import backend
    from keras_seq.search import beam_search

    limits = {"min_length": length, "max_length": length, "max_length_extra": length}
    find = functools.partial(beam_search, model, beam_size=BEAM, max_length_ratio=0.0, **limits)
    search = backend.compiled(find, model.variables, [2])
    return lambda: backend.to_numpy(search(source).lengths)[:, 0].tolist()


def theirs(translator, pieces, source, length):
    """Builds a function that decodes with CTranslate2 and returns the target lengths."""
    rows = [[pieces[token] for token in row] for row in source]

    def decode():
        found = translator.translate_batch(
            rows,
            max_batch_size=SENTENCES,
            beam_size=BEAM,
            length_penalty=1.0,
            min_decoding_length=length,
            max_decoding_length=length,
            max_input_length=0,
        )
        return [len(result.hypotheses[0]) for result in found]

    return decode


if __name__ == "__main__":
    main()
