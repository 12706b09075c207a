"""Pairs of monolingual text and its translations by a run."""

import gzip
import itertools

import pytest

import keras_seq
from keras_seq.augmentation import make_synthetic_pairs, synthetic_pairs
from keras_seq.jobs import translate_files
from keras_seq.preparation import prepare_run
from keras_seq.settings import load_settings
from keras_seq.text import InputError

LINES = ["March 5, 2021", "", "6\tmai 1999", "  ", "12.11.1987", "May 3rd", "March 5, 2021"]
ANIMALS = {"cat": "Katze", "dog": "Hund", "horse": "Pferd", "bird": "Vogel", "mouse": "Maus"}
VERBS = {"sees": "sieht", "follows": "folgt", "likes": "mag", "hears": "hört", "finds": "findet"}


@pytest.mark.process
def test_lines_become_pairs_with_the_translations_of_the_run(tiny_run, tmp_path, keras_seq_command):
    first, second = tmp_path / "a.txt", tmp_path / "b.txt.gz"
    translations = dict(zip(LINES, keras_seq.translate(tiny_run, LINES, beam_size=3), strict=True))
    first.write_text("".join(f"{line}\n" for line in LINES))
    second.write_bytes(gzip.compress(b"4 June\n"))
    output = tmp_path / "pairs.tsv"
    rest = [tiny_run, first, second, "-o", output, "--beam-size", 3, "--workers", 1]
    command = ["augment", "back-translate", *rest]

    # An interrupted call has left the translations of the first file.
    folder = tmp_path / "pairs.tsv.job"
    translate_files(
        tiny_run, [str(first), str(second)], folder, search={"n_best": 1, "beam_size": 3}, workers=1
    )
    outcome = keras_seq_command(*command, "--tag", "<bt>")
    assert outcome.code == 0, outcome.err
    translations["4 June"] = keras_seq.translate(tiny_run, ["4 June"], beam_size=3)[0]
    kept = [line for line in [*LINES, "4 June"] if line.strip()]
    assert all(translations[line] for line in kept)
    assert output.read_text().split("\n")[:-1] == [
        f"<bt> {translations[line]}\t{line}".replace(line, line.replace("\t", " ")) for line in kept
    ]
    assert outcome.err.split("\n")[-2].startswith(f"{output}: {len(kept)} pairs; left out: 2 blank")
    assert not folder.exists()

    assert keras_seq_command(*command).error == f"{output}: exists already; --overwrite replaces it"
    outcome = keras_seq_command("augment", "self-train", *rest, "--overwrite")
    assert outcome.code == 0, outcome.err
    assert output.read_text().split("\n")[0] == f"{LINES[0]}\t{translations[LINES[0]]}"


@pytest.mark.process
def test_text_without_a_pair_is_one_clear_line(tiny_run, tmp_path):
    (tmp_path / "blank").write_text("\n \n")
    with pytest.raises(InputError, match=r"no pair is left of 2 lines: 2 blank, 0 without a trans"):
        make_synthetic_pairs(tiny_run, str(tmp_path / "blank"), tmp_path / "out", workers=1)
    assert not (tmp_path / "out").exists()


def test_text_in_the_language_of_the_targets_is_refused(tmp_path):
    """A run in the wrong direction is the usual mistake of back-translation."""
    pairs = [
        (f"the {a} {verb} the {b}", f"{ANIMALS[a]} {VERBS[verb]} {ANIMALS[b]}")
        for a, verb, b in itertools.product(ANIMALS, VERBS, ANIMALS)
    ]
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    overrides = {"data.pairs": str(path), "data.valid_pairs": str(path), "tokenizer.size": 300}
    run = prepare_run(load_settings(preset="demo", overrides=overrides), tmp_path / "run")
    for name, side in (("english", 0), ("german", 1)):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in pairs[:30]))
    with pytest.raises(InputError, match=r"german: looks like the target language of .*run, expec"):
        make_synthetic_pairs(run.path, str(tmp_path / "german"), tmp_path / "out")
    # The right language gets as far as the weights, which this run does not have.
    with pytest.raises(InputError, match="no checkpoint"):
        make_synthetic_pairs(run.path, str(tmp_path / "english"), tmp_path / "out")


def test_lines_without_a_translation_and_copies_are_left_out(tmp_path):
    translated = [
        ("ein Hund", "a dog"),
        (" ", ""),
        ("eine Katze", " "),
        ("New York!", "new york"),
        ("1987", "1987"),
    ]
    path = tmp_path / "pairs.tsv"
    counts = synthetic_pairs._write(path, iter(translated), "target", "")
    assert counts == (2, 1, 1, 1)
    assert path.read_text() == "a dog\tein Hund\n1987\t1987\n"
