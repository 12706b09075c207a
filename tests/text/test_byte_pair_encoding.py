"""`kind="bpe"` learns the merges of byte pair encoding, Sennrich et al. (2016)."""

import random
from collections import Counter

import sentencepiece

from keras_seq.text import Tokenizer

LETTERS = random.Random(3)
WORDS = ["".join(LETTERS.choices("abcdef", weights=[6, 5, 4, 3, 2, 1], k=6)) for _ in range(40)]
TEXT = [" ".join(LETTERS.choices(WORDS, k=9)) for _ in range(200)]


def learn_merges(lines, count):
    """Learns the merges of a text: at each step, the most frequent pair of adjacent symbols.

    Each word begins with the space mark, and merges never cross word boundaries. Among equally
    frequent pairs, the shortest is merged first, then the first in alphabetical order.
    """
    words = Counter(word for line in lines for word in line.split())
    cuts = {word: ["▁", *word] for word in words}
    merges = []
    for _ in range(count):
        pairs = Counter()
        for word, symbols in cuts.items():
            for pair in zip(symbols, symbols[1:], strict=False):
                pairs[pair] += words[word]
        best = min(pairs, key=lambda pair: (-pairs[pair], len("".join(pair)), "".join(pair)))
        merges.append("".join(best))
        for word, symbols in cuts.items():
            cuts[word] = merged(symbols, best)
    return merges, cuts


def merged(symbols, pair):
    done = []
    for symbol in symbols:
        if done and (done[-1], symbol) == pair:
            done[-1] += symbol
        else:
            done.append(symbol)
    return done


def pieces_of(tokenizer):
    """Returns the pieces in merge order, without characters and bytes, and the processor."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.to_bytes())
    ids = [i for i in range(processor.vocab_size()) if not processor.is_byte(i)]
    ids = [i for i in ids if not (processor.is_control(i) or processor.is_unknown(i))]
    pieces = sorted((-processor.get_score(i), processor.id_to_piece(i)) for i in ids)
    return [piece for _, piece in pieces if len(piece) > 1], processor


def test_bpe_training_learns_the_merges_of_the_paper_in_order():
    tokenizer = Tokenizer.train(TEXT, size=330, kind="bpe")
    found, processor = pieces_of(tokenizer)
    expected, cuts = learn_merges(TEXT, len(found))
    assert len(found) > 50
    assert found == expected
    for word, symbols in cuts.items():
        assert processor.encode(word, out_type=str) == symbols
