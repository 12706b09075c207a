"""Tests whether `beam_search` and CTranslate2 find the same translations with the same weights.

    python benchmarks/search_against_ctranslate2.py runs/ende test.en.gz --lines 1000

For lines that differ, forced decoding with the normalization of the search shows which translation
has the higher score.
"""

import argparse
import itertools
import os
from collections import Counter

import machine

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run")
    parser.add_argument("file", help="source text, plain or .gz")
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--beam", default="1,5", help="beam sizes, with commas; 1 is greedy search")
    parser.add_argument("--patience", type=float, default=1.0, help="of our beam; theirs has 2")
    parser.add_argument("--show", type=int, default=0, help="so many differing lines in full")
    arguments = parser.parse_args()

    from keras_seq import Translator
    from keras_seq.inference.likelihood import LikelihoodScorer
    from keras_seq.serving import CTranslate2Translator
    from keras_seq.text import read_lines

    lines = (line for line in read_lines(arguments.file) if line.strip())
    lines = list(itertools.islice(lines, arguments.lines))
    print(machine.describe())
    scorer = LikelihoodScorer.load(arguments.run)

    def score(line: str, found: object) -> float:
        # Mean log-probability, as in the search. Truncated outputs have no end token.
        (one,) = scorer.of_tokens([line], [found.tokens])
        length = len(found.tokens) + found.ended
        return sum(one.log_probabilities[:length]) / length

    for beam_size in map(int, arguments.beam.split(",")):
        options = {"beam_size": beam_size, "length_normalization": "average", "alpha": 1.0}
        patience = {"patience": arguments.patience} if beam_size > 1 else {}
        ours, theirs = (
            [found[0] for found in engine.load(arguments.run, **own).translate(lines)]
            for engine, own in ((Translator, options | patience), (CTranslate2Translator, options))
        )
        different = []
        furthest = 0.0
        for line, one, other in zip(lines, ours, theirs, strict=True):
            if (one.tokens, one.ended) == (other.tokens, other.ended):
                furthest = max(furthest, abs(one.score - other.score))
            else:
                different.append((line, one, other, score(line, one), score(line, other)))
        verdicts = Counter(
            "equal" if abs(a - b) < 1e-5 else "ours" if a > b else "theirs"
            for *_, a, b in different
        )
        print(
            f"beam {beam_size}: {len(lines) - len(different)} of {len(lines)} lines the same to "
            f"the token, scores within {furthest:.1e}; {len(different)} differ, of which ours "
            f"scores higher in {verdicts['ours']}, theirs in {verdicts['theirs']}, and the same "
            f"in {verdicts['equal']}"
        )
        for line, one, other, a, b in different[: arguments.show]:
            print(f"  {line}\n    ours   {a:.4f} {one.text}\n    theirs {b:.4f} {other.text}")


if __name__ == "__main__":
    main()
