"""Pairs with a teacher's translations as targets."""

import pytest
from sacrebleu.metrics.chrf import CHRF

import keras_seq
from keras_seq.augmentation import distillation, make_distilled_pairs
from keras_seq.jobs import translate_files
from keras_seq.text import Example, InputError, PairFiles

PAIRS = [
    ("March 5, 2021", "2021-03-05"),
    ("6 mai 1999", "1999-05-06"),
    ("12.11.1987", "1987-11-12"),
]


@pytest.mark.process
def test_targets_are_the_translations_of_the_teacher(tiny_run, tmp_path, keras_seq_command):
    pairs, output = tmp_path / "pairs.tsv", tmp_path / "distilled.tsv"
    pairs.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS) + "\tnothing\n")
    sources = [source for source, _ in PAIRS]
    command = ["distill", tiny_run, "--pairs", pairs, "-o", output, "--workers", 1]
    # An interrupted call has left the translations.
    job = tmp_path / "distilled.tsv.job"
    job.mkdir()
    (job / "sources.txt").write_text("".join(f"{source}\n" for source in sources))
    search = {"beam_size": 2, "n_best": 1}
    translate_files(
        tiny_run, str(job / "sources.txt"), job / "translated", search=search, workers=1
    )
    outcome = keras_seq_command(*command)
    assert outcome.code == 0, outcome.err
    translations = keras_seq.translate(tiny_run, sources)
    assert output.read_text().split("\n")[:-1] == [
        f"{source}\t{target}" for source, target in zip(sources, translations, strict=True)
    ]
    assert "1 of 1 files are done already" in outcome.err
    assert "3 pairs, 3 with a new target; left out: 0 without a translation" in outcome.err
    assert not job.exists()
    assert keras_seq_command(*command).error.endswith("exists already; --overwrite replaces it")

    # The closest of three candidates, as sacreBLEU scores them.
    counts = make_distilled_pairs(
        tiny_run, output, files=PairFiles(pairs=str(pairs)), closest="chrf", candidates=3,
        workers=1, overwrite=True,
    )  # fmt: skip
    assert counts == (3, 3, 0)
    candidates = keras_seq.Translator.load(tiny_run, beam_size=3, n_best=3).translate(sources)
    for line, (source, target), found in zip(
        output.read_text().split("\n"), PAIRS, candidates, strict=False
    ):
        scores = [CHRF().sentence_score(one.text, [target]).score for one in found]
        assert line == f"{source}\t{found[scores.index(max(scores))].text}"


def test_candidates_are_read_by_line_and_the_closest_is_written(tmp_path):
    translated = tmp_path / "translated"
    translated.write_text("1\t-0.1\ta cat\n1\t-0.2\ta dog\n2\t0.0\t\n3\t-0.1\tx\ty\n3\t-0.3\tz\n")
    candidates = distillation._candidates(translated, 2)
    examples = [Example("ein Hund", "the dog"), Example("?", "!"), Example("w\tV;PST", "x y")]
    counts = distillation._write(tmp_path / "out", examples, candidates, "chrf")
    assert (tmp_path / "out").read_text() == "ein Hund\ta dog\nw\tx y\tV;PST\n"
    # The target that differs in nothing but a tab is the same words.
    assert counts == (2, 1, 1)
    with pytest.raises(InputError, match="no pair is left: 1 sources without a translation"):
        distillation._write(tmp_path / "none", examples[1:2], iter([[""]]), "none")
    assert not (tmp_path / "none").exists()


def test_columns_need_pairs(tiny_run, tmp_path, keras_seq_command):
    command = ["distill", tiny_run, "-o", tmp_path / "out", "--columns", "source=1,target=2"]
    assert "needs --pairs" in keras_seq_command(*command).error
    command = ["distill", tiny_run, "-o", tmp_path / "out", "--source", tmp_path / "missing"]
    assert "--source without --target" in keras_seq_command(*command).error
