"""Pairs with a teacher's translations as targets."""

import functools
import gzip
from pathlib import Path

import pytest
from sacrebleu.metrics.chrf import CHRF

import keras_seq
from keras_seq.augmentation import distillation, make_distilled_pairs
from keras_seq.jobs import translate_files
from keras_seq.preparation import prepare_run
from keras_seq.settings import load_settings
from keras_seq.text import InputError, PairFiles

PAIRS = [
    ("March 5, 2021", "2021-03-05"),
    ("6 mai 1999", "1999-05-06"),
    ("12.11.1987", "1987-11-12"),
]


@pytest.mark.weekly
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

    # A beam is not narrower than the candidates.
    short = keras_seq_command(*command, "--overwrite", "--closest", "chrf", "--beam-size", 4)
    assert "candidates: received 8, expected at most the beam size (4): lower --cand" in short.error

    # The closest of three candidates, as sacreBLEU scores them.
    counts = make_distilled_pairs(
        tiny_run, output, files=PairFiles(pairs=str(pairs)), closest="chrf", candidates=3,
        workers=1, overwrite=True,
    )  # fmt: skip
    assert counts == (3, 3, 0, 0)
    candidates = keras_seq.Translator.load(tiny_run, beam_size=3, n_best=3).translate(sources)
    for line, (source, target), found in zip(
        output.read_text().split("\n"), PAIRS, candidates, strict=False
    ):
        scores = [CHRF().sentence_score(one.text, [target]).score for one in found]
        assert line == f"{source}\t{found[scores.index(max(scores))].text}"


def test_candidates_are_read_by_line_and_the_closest_is_written(tmp_path):
    translated = tmp_path / "translated"
    translated.write_text("1\t-0.1\ta cat\n1\t-0.2\ta dog\n2\t0.0\t\n3\t-0.1\tx\ty\n3\t-0.3\tz\n")
    (tmp_path / "in").write_text("ein Hund\tthe dog\t\n?\t!\t\nw\tx y\tV;PST\n")
    columns = "source=1,target=2,features=3"
    corpus = distillation._Corpus(PairFiles(pairs=str(tmp_path / "in"), columns=columns))
    candidates = distillation._candidates(translated, 2)
    choose = functools.partial(distillation._closest, metric="chrf")
    counts = distillation._write(tmp_path / "out", None, corpus, candidates, choose)
    assert (tmp_path / "out").read_text() == "ein Hund\ta dog\t\nw\tx y\tV;PST\n"
    # The target that differs in nothing but a tab is the same words.
    assert counts == (2, 1, 1, 0)
    with pytest.raises(InputError, match="no pair is left: 3 sources without a translation"):
        distillation._write(tmp_path / "none", None, corpus, iter([[""]] * 3), choose)
    assert not (tmp_path / "none").exists()


@pytest.fixture
def upper_case(monkeypatch):
    """Distills from runs that translate each line into upper case."""

    def translate(teacher, sources, folder, **_):
        folder.mkdir()
        (folder / "sources.txt").write_text(Path(sources).read_text().upper())

    monkeypatch.setattr(distillation, "translate_files", translate)


@pytest.mark.usefixtures("upper_case")
def test_weights_are_kept_and_pairs_that_the_teacher_held_out_are_not(tmp_path, notices):
    for name, count in (("real", 90), ("made", 30)):
        lines = "".join(f"{name} {n}\tx{n}\n" for n in range(count))
        (tmp_path / f"{name}.tsv").write_text(lines + " \t \n")
    files = [str(tmp_path / "real.tsv"), str(tmp_path / "made.tsv")]
    overrides = {"data.pairs": files, "data.file_weights": [1, 0.25], "tokenizer.kind": "char"}
    run = prepare_run(load_settings(preset="demo", overrides=overrides), tmp_path / "run")
    held_out = set(run.valid_lines()[0])
    assert len(held_out) == 6

    output = tmp_path / "out.tsv.gz"
    counts = make_distilled_pairs(run.path, output, notice=notices.append)
    assert counts == (114, 114, 0, 6)
    lines = gzip.decompress(output.read_bytes()).decode().split("\n")[:-1]
    sources = [line.split("\t")[0] for line in lines]
    assert [f"{source}\t{source.upper()}" for source in sources] == lines
    assert held_out.isdisjoint(sources) and len(set(sources)) == 114
    weights = tmp_path / "out.tsv.weights"
    assert [float(line) for line in weights.read_text().split()] == [
        1 if source.startswith("real") else 0.25 for source in sources
    ]
    assert f"{weights}: the weights of these pairs, for --weights" in notices
    output.unlink()
    with pytest.raises(InputError, match=r"out.tsv.weights: exists already; --overwrite"):
        make_distilled_pairs(run.path, output)
    # A kill came between the two files.
    job = tmp_path / "out.tsv.gz.job"
    job.mkdir()
    assert make_distilled_pairs(run.path, output) == (114, 114, 0, 6)
    assert len(weights.read_text().split()) == 114 and not job.exists()

    # Named files are taken whole, and what their reader says is passed on. The weights of the
    # earlier pairs are not theirs.
    (tmp_path / "more.tsv").write_text("source\ttarget\n" + (tmp_path / "real.tsv").read_text())
    more = PairFiles(pairs=str(tmp_path / "more.tsv"))
    options = {"overwrite": True, "notice": notices.append}
    assert make_distilled_pairs(run.path, output, files=more, **options)[0] == 90
    assert not weights.exists()
    assert len([line for line in notices if "more.tsv:1: " in line]) == 1
    with pytest.raises(InputError, match="more.tsv: would replace the text it is made of"):
        make_distilled_pairs(run.path, tmp_path / "more.tsv", files=more, overwrite=True)


@pytest.mark.usefixtures("upper_case")
def test_a_teacher_that_held_nothing_out_teaches_all_pairs(tmp_path):
    (tmp_path / "few.tsv").write_text("a\tb\nc\td\n")
    overrides = {"data.pairs": str(tmp_path / "few.tsv"), "tokenizer.kind": "char"}
    run = prepare_run(load_settings(preset="demo", overrides=overrides), tmp_path / "run")
    assert make_distilled_pairs(run.path, tmp_path / "out") == (2, 2, 0, 0)


def test_the_closest_is_found_by_the_tokenizer_of_the_run():
    """Without spaces, 13a finds one token in each line, and no two lines share any."""
    reference = "犬が公園を走っている。"
    choose = functools.partial(distillation._closest, ["猫です。", reference[:-2]], reference)
    assert choose(metric="bleu", tokenize="13a") == "猫です。"
    assert choose(metric="bleu", tokenize="auto") == reference[:-2]
    with pytest.raises(InputError, match="score.tokenize: unknown tokenizer 'mine'"):
        distillation._require_tokenizer("mine")


def test_columns_need_pairs(tiny_run, tmp_path, keras_seq_command):
    command = ["distill", tiny_run, "-o", tmp_path / "out", "--columns", "source=1,target=2"]
    assert "needs --pairs" in keras_seq_command(*command).error
    command = ["distill", tiny_run, "-o", tmp_path / "out", "--source", tmp_path / "missing"]
    assert "--source without --target" in keras_seq_command(*command).error
