"""Back-translation helps where a sentence tells the choice of a word, and not where none does."""

import random
from pathlib import Path

import pytest
from training.toy import quiet_train, toy_settings

import keras_seq
from keras_seq.augmentation import make_synthetic_pairs, synthetic_pairs

pytestmark = [pytest.mark.slow, pytest.mark.weekly]

# A target is a word and the right one of two that have the same translation.
FIRST, SECOND = [f"a{n}" for n in range(12)], [f"s{n}" for n in range(8)]
TESTED = 96


def lines(count, seed, *, regular):
    """Makes pairs; in a regular language the first word decides which of two words follows."""
    generator, grammar = random.Random(seed), random.Random(0)
    table = {(a, s): grammar.choice("pq") for a in FIRST for s in SECOND}
    found = []
    for _ in range(count):
        a, s = generator.choice(FIRST), generator.choice(SECOND)
        ending = table[a, s] if regular else generator.choice("pq")
        found.append((f"{a} {s}", f"{a} {s}{ending}"))
    return found


def write(path, pairs, sides=(0, 1)):
    path.write_text("".join("\t".join(pair[side] for side in sides) + "\n" for pair in pairs))


def trained(folder, name, files, sides=(0, 1)):
    valid = folder / f"{name}.valid"
    write(valid, lines(24, 5, regular="regular" in folder.name), sides)
    settings = toy_settings(
        folder,
        data__pairs=[str(folder / file) for file in files],
        data__valid_pairs=str(valid),
        tokenizer__kind="word",
        model__units=32,
        model__feedforward_units=32,
        model__dropout=0.0,
        training__batch_tokens=600,
        training__max_steps=250,
        training__validate_every=250,
        training__checkpoint_every=250,
    )
    quiet_train(settings, folder / name)
    return folder / name


def right(run, tested):
    translations = keras_seq.translate(run, [source for source, _ in tested], which="latest")
    return sum(found == target for found, (_, target) in zip(translations, tested, strict=True))


def gain(folder, monkeypatch, *, regular):
    """Returns how many test lines are right without and with back-translation."""

    def translate_files(run, names, output, **_):
        output.mkdir()
        for name in names:
            texts = Path(name).read_text().split("\n")[:-1]
            found = keras_seq.translate(run, texts, which="latest")
            (output / Path(name).name).write_text("".join(f"{line}\n" for line in found))

    monkeypatch.setattr(synthetic_pairs, "translate_files", translate_files)
    pairs = lines(60, 1, regular=regular)
    write(folder / "pairs.tsv", pairs)
    write(folder / "reversed.tsv", pairs, (1, 0))
    write(folder / "mono", lines(600, 2, regular=regular), (1,))
    reverse = trained(folder, "reverse", ["reversed.tsv"], (1, 0))
    counts = make_synthetic_pairs(reverse, str(folder / "mono"), folder / "synthetic.tsv")
    assert counts.pairs == 600
    tested = lines(TESTED, 3, regular=regular)
    before = right(trained(folder, "before", ["pairs.tsv"]), tested)
    return before, right(trained(folder, "after", ["pairs.tsv", "synthetic.tsv"]), tested)


def test_text_that_shows_which_words_go_together_improves_translations(tmp_path, monkeypatch):
    folder = tmp_path / "regular"
    folder.mkdir()
    before, after = gain(folder, monkeypatch, regular=True)
    assert before / TESTED < 0.85
    assert after / TESTED > before / TESTED + 0.1


def test_text_in_which_every_word_goes_with_every_other_does_not(tmp_path, monkeypatch):
    """Half of the guesses are right, within three standard errors, before and after."""
    folder = tmp_path / "random"
    folder.mkdir()
    before, after = gain(folder, monkeypatch, regular=False)
    error = 0.5 / TESTED**0.5
    assert before / TESTED == pytest.approx(0.5, abs=3 * error)
    assert after / TESTED == pytest.approx(0.5, abs=3 * error)
    assert abs(after - before) / TESTED < 3 * 2**0.5 * error
