"""Fine-tunes a pretrained encoder that then classifies sentences with unlabeled nouns.

    python -m pip install 'keras-seq[hub]' && python examples/pretrained_encoder.py [--epochs 8]

Are the sentences about animals or about tools? The 40 labeled sentences name two animals and two
tools; the test sentences name the other 16. Unlabeled text shows what animals and tools do. A
small BERT of KerasHub is pretrained on this text by masked language modeling, saved as a preset and
fine-tuned with `--preset hub:`. The same encoder without pretraining is the baseline.
"""

import argparse
import random
import tempfile
from pathlib import Path

import keras
import keras_hub
import numpy as np

import keras_seq

NOUNS = {
    "beast": "dog cat cow hen fox owl elk ant bee ram".split(),
    "tool": "saw axe pen nail rake hoe file drill spade plane".split(),
}
VERBS = {"beast": "eats sleeps drinks hides".split(), "tool": "rusts breaks cuts bends".split()}
REST = "the old new big small a today and ends well goes".split()
KNOWN = 2
PIECES = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *REST),
    *(word for words in (*NOUNS.values(), *VERBS.values()) for word in words),
]


def sentence(generator, kind, nouns, verbs):
    adjective = generator.choice(("old", "new", "big", "small"))
    end = generator.choice(("today", "well"))
    return f"the {adjective} {generator.choice(nouns)} {generator.choice(verbs)} {end}"


def labeled(count, seed, known):
    generator = random.Random(seed)
    found = []
    for _ in range(count):
        kind = generator.choice(tuple(NOUNS))
        nouns = NOUNS[kind][:KNOWN] if known else NOUNS[kind][KNOWN:]
        found.append((sentence(generator, kind, nouns, ("ends", "goes")), kind))
    return found


def save_encoder(directory, epochs):
    """Pretrains an encoder by masked language modeling and saves it as a preset."""
    keras.utils.set_random_seed(1)
    tokenizer = keras_hub.models.BertTokenizer(vocabulary=PIECES, lowercase=True)
    sizes = {"num_heads": 2, "hidden_dim": 32, "intermediate_dim": 64, "max_sequence_length": 16}
    encoder = keras_hub.models.BertBackbone(len(PIECES), num_layers=2, **sizes)
    if epochs:
        generator = random.Random(1)
        kinds = generator.choices(tuple(NOUNS), k=4000)
        text = np.array([sentence(generator, kind, NOUNS[kind], VERBS[kind]) for kind in kinds])
        hide = keras_hub.models.BertMaskedLMPreprocessor(
            tokenizer, sequence_length=10, mask_selection_rate=0.3, mask_selection_length=3
        )
        encoder.pooled_dense.trainable = False  # The task does not use the pooled output.
        model = keras_hub.models.BertMaskedLM(encoder, preprocessor=None)
        model.compile(optimizer=keras.optimizers.Adam(0.003))
        inputs, words, weights = hide(text)
        model.fit(inputs, words, 64, weights, epochs=epochs, verbose=0, shuffle=False)
    encoder.save_to_preset(str(directory))
    tokenizer.save_to_preset(str(directory))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--steps", type=int, default=60)
    given = parser.parse_args()
    questions = labeled(400, 3, known=False)
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "lines.tsv"
        lines.write_text("".join(f"{text}\t{kind}\n" for text, kind in labeled(40, 2, known=True)))
        for name, epochs in (("new", 0), ("pretrained", given.epochs)):
            save_encoder(f"{folder}/{name}", epochs)
            overrides = {
                "task": "classify",
                "data.labeled": str(lines),
                "training.max_steps": given.steps,
                "training.learning_rate": 0.001,
                "training.ema": 0.0,
            }
            settings = keras_seq.load_settings(preset=f"hub:{folder}/{name}", overrides=overrides)
            keras_seq.train(settings, run := f"{folder}/run-{name}", notice=lambda line: None)
            found = keras_seq.Classifier.load(run)([text for text, _ in questions])
            right = np.mean([one == kind for one, (_, kind) in zip(found, questions, strict=True)])
            print(f"{name} encoder: {right:.1%} of 400 right, about nouns without a label")


if __name__ == "__main__":
    main()
