"""A small KerasHub encoder with random weights, saved as a preset, and texts for it."""

import random
from pathlib import Path

WORDS = "a the dog cat man woman runs sleeps eats and".split()
LETTERS = [chr(code) for code in range(ord("a"), ord("z") + 1)]
NOUNS = WORDS[2:6]
# The special tokens are in BERT's order, which differs from the order of this project.
PIECES = [
    *("[PAD]", "[unused0]", *WORDS[:4], "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS[4:]),
    *(".", ",", *LETTERS[1:], *(f"##{letter}" for letter in LETTERS)),
]
SIZES = {"num_layers": 2, "num_heads": 2, "hidden_dim": 32, "intermediate_dim": 64}
POSITIONS = 32
# Embedding rows without a piece, as in some presets.
SPARE = 3


def save_preset(directory: Path, kind: str = "Bert") -> Path:
    """Saves a preset of the given kind, Bert or DistilBert, and returns its directory."""
    import keras
    import keras_hub

    keras.utils.set_random_seed(7)
    make = getattr(keras_hub.models, f"{kind}Backbone")
    make(
        vocabulary_size=len(PIECES) + SPARE, max_sequence_length=POSITIONS, **SIZES
    ).save_to_preset(str(directory))
    tokenizer = getattr(keras_hub.models, f"{kind}Tokenizer")
    tokenizer(vocabulary=PIECES, lowercase=True, strip_accents=True).save_to_preset(str(directory))
    return directory


def who_comes_first(count: int, seed: int) -> list[tuple[str, str]]:
    """Texts labeled with the first of their two nouns, which a bag of words cannot predict."""
    generator = random.Random(seed)
    lines = []
    for _ in range(count):
        first, second = generator.sample(NOUNS, 2)
        verbs = generator.choices(WORDS[6:9], k=2)
        lines.append((f"A {first} {verbs[0]}, the {second} {verbs[1]}.", first))
    return lines
