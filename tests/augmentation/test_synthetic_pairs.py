"""Pairs of monolingual text and its translations by a run."""

import gzip
import itertools
from pathlib import Path

import pytest

import keras_seq
from keras_seq.augmentation import (
    make_distilled_pairs,
    make_synthetic_pairs,
    synthetic_pairs,
)
from keras_seq.jobs import translate_files
from keras_seq.preparation import prepare_run
from keras_seq.settings import load_settings
from keras_seq.text import InputError, PairFiles

LINES = ["March 5, 2021", "", "6\tmai 1999", "  ", "12.11.1987", "May 3rd", "March 5, 2021"]
ANIMALS = {"cat": "Katze", "dog": "Hund", "horse": "Pferd", "bird": "Vogel", "mouse": "Maus"}
VERBS = {"sees": "sieht", "follows": "folgt", "likes": "mag", "hears": "hört", "finds": "findet"}


@pytest.mark.process
@pytest.mark.weekly
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
    said, advice = outcome.err.split("\n")[-3:-1]
    assert said.startswith(f"{output}: {len(kept)} pairs; left out: 2 blank")
    assert "name validation files, or else some of these pairs may be held out" in advice
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


@pytest.mark.parametrize(
    "make",
    [
        lambda run, text, out: make_synthetic_pairs(run, str(text), out, workers=1),
        lambda run, text, out: make_distilled_pairs(
            run, out, files=PairFiles(pairs=str(text)), workers=1
        ),
    ],
    ids=["self-training", "distillation"],
)
def test_files_of_others_in_the_way_are_kept(tiny_run, tmp_path, make):
    """The folder of a job is deleted at its end."""
    (tmp_path / "text.tsv").write_text("May 5\t1\n")
    kept = tmp_path / "out.tsv.job" / "kept.txt"
    kept.parent.mkdir()
    kept.write_text("precious")
    # As if a job had been interrupted.
    (kept.parent / "sources.txt").touch()
    (kept.parent / ".keras-seq").mkdir()
    with pytest.raises(InputError, match=r"out\.tsv\.job/\S+: in the way of this job"):
        make(tiny_run, tmp_path / "text.tsv", tmp_path / "out.tsv")
    assert kept.read_text() == "precious"


SENTENCES = [
    (f"the {a} {verb} the {b}", f"{ANIMALS[a]} {VERBS[verb]} {ANIMALS[b]}")
    for a, verb, b in itertools.product(ANIMALS, VERBS, ANIMALS)
]


def prepared(folder, rows, columns=None):
    """Prepares a run of these rows of columns, without weights."""
    path = folder / "pairs.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in rows))
    files = {"data.pairs": str(path), "data.valid_pairs": str(path)}
    overrides = {**files, "data.columns": columns, "tokenizer.kind": "char"}
    return prepare_run(load_settings(preset="demo", overrides=overrides), folder / "run").path


@pytest.fixture
def translations(monkeypatch):
    """Returns a table that the runs of a test translate lines by."""
    table = {}

    def translate(run, names, folder, **_):
        folder.mkdir()
        for name in names:
            lines = Path(name).read_text().split("\n")[:-1]
            (folder / Path(name).name).write_text("".join(f"{table[line]}\n" for line in lines))

    monkeypatch.setattr(synthetic_pairs, "translate_files", translate)
    return table


def test_text_in_another_language_is_refused(tmp_path, keras_seq_command):
    """A run in the wrong direction is the usual mistake of back-translation."""
    run = prepared(tmp_path, SENTENCES)
    french = [f"les {a}s regardent encore une {b}" for a in "abcdefg" for b in ("maison", "vache")]
    sides = {"english": [en for en, _ in SENTENCES[:30]], "german": [de for _, de in SENTENCES]}
    for name, lines in {**sides, "french": french, "few": french[:9]}.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(InputError, match=r"german: looks like the target language of .*run, expec"):
        make_synthetic_pairs(run, str(tmp_path / "german"), tmp_path / "out")
    with pytest.raises(InputError, match=r"french: looks like neither language of .*run, expected"):
        make_synthetic_pairs(run, str(tmp_path / "french"), tmp_path / "out")
    # The right language, too few lines, and any language if it is asked for, get as far as the
    # weights, which this run does not have.
    for name, option in (("english", []), ("few", []), ("german", ["--any-language"])):
        command = ["augment", "self-train", run, tmp_path / name, "-o", tmp_path / "out", *option]
        assert "no checkpoint" in keras_seq_command(*command).error


def test_clean_text_of_one_language_is_not_the_language_of_the_targets(tmp_path, translations):
    """The sides of a run that restores capitals and periods are in one language."""
    restored = [(text, f"{text.capitalize()}.") for text, _ in SENTENCES]
    translations.update({target: target for _, target in restored}, **dict(restored))
    run = prepared(tmp_path, restored)
    for side, text_is in ((0, "source"), (1, "target")):
        text, output = tmp_path / "text", tmp_path / f"{text_is}.tsv"
        text.write_text("".join(f"{pair[side]}\n" for pair in restored))
        # All pairs are copies apart from case and punctuation, as in the text of the run.
        assert make_synthetic_pairs(run, str(text), output, text_is=text_is) == (125, 0, 0, 0)
    assert output.read_text().split("\n")[0] == f"{restored[0][1]}\t{restored[0][1]}"


def test_features_are_the_third_column(tmp_path, translations, notices):
    rows = [(f"walk{n}", f"walked{n}", "V;PST") for n in range(12)]
    columns = "source=1,target=2,features=3"
    run = prepared(tmp_path, rows, columns)
    translations.update({"talk\tV;PST": "talked", "jump\tV;PRS": "jum\tps", "fold": "folds"})
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in translations))
    output = tmp_path / "out.tsv"
    options = {"tag": "<st>", "notice": notices.append, "overwrite": True}
    make_synthetic_pairs(run, str(tmp_path / "text"), output, text_is="source", **options)
    expected = "<st> talk\ttalked\tV;PST\n<st> jump\tjum ps\tV;PRS\n<st> fold\tfolds\t\n"
    assert output.read_text() == expected
    assert notices[-1] == f"{output}: three columns: --columns {columns}"
    read = [example[:2] for example in PairFiles(pairs=str(output), columns=columns).read()]
    assert read[0] == ("<st> talk\tV;PST", "talked")
    make_synthetic_pairs(run, str(tmp_path / "text"), output, **options)
    assert output.read_text().startswith("<st> talked\ttalk\tV;PST\n<st> jum ps\tjump\tV;PRS\n")
    with pytest.raises(InputError, match=r"received 'de', expected none: .*run reads features"):
        make_synthetic_pairs(run, str(tmp_path / "text"), output, target_language="de", **options)


def test_target_languages_are_the_third_column(tmp_path, translations, notices):
    rows = [(f"dog {n}", f"Hund {n}", "de") for n in range(6)]
    rows += [(f"Hund {n}", f"dog {n}", "en") for n in range(6)]
    run = prepared(tmp_path, rows, "source=1,target=2,target_language=3")
    translations.update({"<2en> Katze": "cat", "a\tbird": "ein Vogel"})
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in translations))
    output = tmp_path / "out.tsv"
    options = {"to": "DE", "notice": notices.append, "overwrite": True}
    make_synthetic_pairs(run, str(tmp_path / "text"), output, text_is="source", **options)
    assert output.read_text() == "Katze\tcat\ten\na bird\tein Vogel\tde\n"
    # The language of a text is not known from what it is translated into.
    make_synthetic_pairs(run, str(tmp_path / "text"), output, **options)
    assert output.read_text() == "cat\tKatze\nein Vogel\ta bird\n"
    assert "two columns; for a corpus of several target languages, name the language" in notices[-1]
    make_synthetic_pairs(run, str(tmp_path / "text"), output, target_language="fr", **options)
    assert output.read_text() == "cat\tKatze\tfr\nein Vogel\ta bird\tfr\n"
    options["text_is"] = "source"
    with pytest.raises(InputError, match="received 'fr', expected none: it is the language that"):
        make_synthetic_pairs(run, str(tmp_path / "text"), output, target_language="fr", **options)


def test_lines_without_a_translation_and_copies_are_left_out(tmp_path):
    translated = [
        ("ein Hund", "a dog"),
        (" ", ""),
        ("eine Katze", " "),
        ("New York!", "new york"),
        ("1987", "1987"),
    ]
    path = tmp_path / "pairs.tsv"
    counts = synthetic_pairs._write(path, iter(translated), synthetic_pairs._Columns())
    assert counts == (2, 1, 1, 1)
    assert path.read_text() == "a dog\tein Hund\n1987\t1987\n"
