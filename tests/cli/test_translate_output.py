"""Output of `keras-seq translate` besides plain lines: TSV, JSON, alignments and images."""

import functools
import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from weekly import SLOW_AND_WEEKLY

from keras_seq.run import Run

LINES = ["March 5, 2021", "", "5\tmai\\t 1999", "6. M\u00e4rz\r2020\u2028", "\\", "7 juin 1987"]
TEXT = "\n".join(LINES).encode()
MAGIC = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def load():
    from keras_seq.inference.translator import Translator

    return functools.cache(Translator.load)


@pytest.fixture
def command(keras_seq_command, load, monkeypatch):
    """Runs `keras-seq translate`; each run is loaded and compiled only once."""
    from keras_seq.inference.translator import Translator

    monkeypatch.setattr(Translator, "load", staticmethod(load))
    return functools.partial(keras_seq_command, "translate")


@pytest.fixture(params=["tiny_run", pytest.param("tiny_rnn_run", marks=SLOW_AND_WEEKLY)])
def run(request):
    return request.getfixturevalue(request.param)


def rows(outcome):
    """Parses TSV output as documented: no quotes, special characters escaped by a backslash."""
    assert outcome.code == 0, outcome.err
    meant = {"\\\\": "\\", "\\t": "\t", "\\n": "\n", "\\r": "\r"}
    head, *lines = [line.split("\t") for line in outcome.lines]
    return [
        {
            name: re.sub(r"\\.", lambda found: meant[found[0]], value)
            for name, value in zip(head, line, strict=True)
        }
        for line in lines
    ]


def said(outcome):
    """Returns stderr without warnings about the length limit, which a tiny model often reaches."""
    assert outcome.code == 0, outcome.err
    return re.sub(r"^lines? [\d to]+: \d+ cut short .*\n", "", outcome.err, flags=re.M)


def objects(outcome):
    assert outcome.code == 0, outcome.err
    return [json.loads(line) for line in outcome.lines]


@pytest.mark.slow
def test_tsv_output_has_every_line_and_preserves_every_text(command, run):
    best = command(run, "--n-best", "2", stdin=TEXT).lines
    table = rows(command(run, "--n-best", "2", "--format", "tsv", stdin=TEXT))
    assert list(table[0]) == ["line", "rank", "score", "truncated", "source", "translation"]
    for row in table:
        assert row["source"] == LINES[int(row["line"]) - 1]
    plain = [
        "\t".join([row["line"], row["score"] or "0.0000", row["translation"]]) for row in table
    ]
    assert plain == best
    assert [row["line"] for row in table if row["rank"] == "1"] == list("123456")
    assert {row["truncated"] for row in table} <= {"0", "1"}


def test_jsonl_output_equals_tsv_output_plus_tokens(command, run):
    table = rows(command(run, "--n-best", "2", "--format", "tsv", stdin=TEXT))
    found = objects(command(run, "--n-best", "2", "--format", "jsonl", stdin=TEXT))
    tokenizer = Run.open(run).target_tokenizer
    ids = {piece.text: i for i, piece in enumerate(tokenizer.pieces)}
    assert [(one["line"], one["source"]) for one in found] == list(enumerate(LINES, 1))
    assert found[1] == {"line": 2, "source": "", "translations": []}
    for one in found:
        of_line = [row for row in table if row["line"] == str(one["line"]) and row["score"]]
        for translation, row in zip(one["translations"], of_line, strict=True):
            assert set(translation) == {"text", "score", "truncated", "tokens"}
            assert translation["text"] == row["translation"]
            assert translation["score"] == pytest.approx(float(row["score"]), abs=1e-4)
            assert str(int(translation["truncated"])) == row["truncated"]
            tokens = translation["tokens"]
            ended = tokens[-1:] == ["</s>"]
            kept = tokens[:-1] if ended else tokens
            assert tokenizer.decode([[ids[token] for token in kept]]) == [translation["text"]]
            assert ended or translation["truncated"]


def test_hard_alignments_follow_the_attention_weights_in_every_format(command, run):
    text = b"March 5, 2021\n\n7 juin 1987\n"
    hard = objects(command(run, "--format", "jsonl", "--alignment", "hard", stdin=text))
    table = rows(command(run, "--format", "tsv", "--alignment", "hard", stdin=text))
    plain = command(run, "--alignment", "hard", stdin=text).lines
    soft = objects(command(run, "--format", "jsonl", "--alignment", "soft", stdin=text))
    for line, one, row, weighed in zip(plain, hard, table, soft, strict=True):
        if not one["source"]:
            assert (line, row["alignment"], one["translations"]) == ("", "", [])
            continue
        (translation,) = one["translations"]
        links = [tuple(link) for link in translation["alignment"]]
        written = " ".join(f"{source}-{target}" for source, target in links)
        assert row["alignment"] == written
        assert line == f"{translation['text']} ||| {written}"
        # Recompute the alignment from the attention weights and the word boundaries.
        weights = np.array(weighed["translations"][0]["attention"])
        source, target = (
            np.cumsum([piece.startswith("\u2581") for piece in pieces]) - 1
            for pieces in (weighed["source_tokens"][:-1], translation["tokens"])
        )
        count = len(translation["text"].split())
        for word in range(count):
            rows_of = [i for i in np.flatnonzero(target == word) if
                       translation["tokens"][i] != "</s>"]  # fmt: skip
            sums = [
                weights[rows_of][:, np.flatnonzero(source == other)].sum()
                for other in range(source.max() + 1)
            ]
            chosen = dict((t, s) for s, t in links)[word]
            assert sums[chosen] == pytest.approx(max(sums), abs=1e-4)


def test_soft_alignments_are_distributions_of_the_chosen_head(command, tiny_run):
    def weights(*options):
        (one,) = objects(
            command(tiny_run, "March 5, 2021", "--format", "jsonl", "--alignment", "soft", *options)
        )
        (translation,) = one["translations"]
        found = np.array(translation["attention"])
        assert found.shape == (len(translation["tokens"]), len(one["source_tokens"]))
        assert one["source_tokens"][-1] == "</s>"
        np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-4)
        return found

    heads = [weights("--attention-head", head, "--attention-layer", -1) for head in (0, 1)]
    assert np.abs(heads[0] - heads[1]).max() > 1e-3
    np.testing.assert_allclose(weights(), np.mean(heads, axis=0), atol=2e-6)


def test_attention_on_the_terminal_leaves_stdout_alone(command, run, tmp_path):
    outcome = command(run, "--attention", "term", stdin=TEXT)
    assert outcome.lines == command(run, stdin=TEXT).lines
    assert "1: March 5, 2021  ->  " in outcome.err and "\n2: " not in outcome.err
    assert "\n6: 7 juin 1987  ->  " in outcome.err and "\x1b" not in outcome.err
    assert set("\u2591\u2592\u2593\u2588") & set(outcome.err)
    drawn = tmp_path / "map.txt"
    drawn.write_text("earlier")
    outcome = command(run, "--attention", "term", "--attention-file", drawn, stdin=b"5 mai 1999\n")
    assert said(outcome) == ""
    assert drawn.read_text(encoding="utf-8").startswith("1: 5 mai 1999  ->  ")


def test_a_map_has_a_square_for_each_weight(monkeypatch):
    import io

    from rich.console import Console

    from keras_seq_cli.attention_map import print_map

    weights = [[1.0, 0.0, 0.5], [0.0, 0.25, 0.75]]
    for width, blocks in ((40, 1), (8, 2), (3, 3)):
        stream = io.StringIO()
        console = Console(file=stream, width=width, highlight=False)
        print_map(console, "[bold]title", ["ab", "\u732b", "c" * 30], ["x\x1b", "yy"], weights)
        lines = stream.getvalue().split("\n")
        assert lines[0] == "[bold]title" and "\x1b" not in stream.getvalue()
        shown = [line for line in lines if line.startswith((" x\ufffd ", "x\ufffd ", "yy "))]
        assert len(shown) == 2 * blocks
        assert "".join(line[3:] for line in shown[0::2]) == "\u2588\u2588  \u2592\u2592"
        assert "".join(line[3:] for line in shown[1::2]) == "  \u2591\u2591\u2593\u2593"
    stream = io.StringIO()
    console = Console(file=stream, width=40, force_terminal=True, color_system="truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)
    print_map(console, "t", ["a"], ["x"], [[1.0]])
    assert "\x1b[48;2;20;82;180m  " in stream.getvalue()


@pytest.mark.slow
def test_attention_and_beam_pages_contain_the_translations(command, tiny_run, tmp_path):
    run = tiny_run
    page, beam = tmp_path / "attention.html", tmp_path / "beam.html"
    outcome = command(
        run, "--attention", "html", "--attention-file", page, "--show-beam", beam,
        "--attention-layer", -1, stdin=TEXT,
    )  # fmt: skip
    assert said(outcome) == ""
    assert outcome.lines == command(run, stdin=TEXT).lines
    numbers = [number for number, line in enumerate(LINES, 1) if line]

    def data(path):
        return json.loads(re.search(r"^const data = (.*);$", path.read_text(), re.M)[1])

    shown = data(page)
    assert [line["number"] for line in shown["lines"]] == numbers
    assert (shown["layer"], shown["head"], shown["left"]) == (shown["layers"] - 1, None, 0)
    for line in shown["lines"]:
        assert line["text"] == outcome.lines[line["number"] - 1]
        weights = np.array(line["weights"])
        size = (len(line["tokens"]), len(line["source_tokens"]))
        assert weights.shape == (shown["layers"], shown["heads"], size[0] * size[1])
        sums = weights.reshape(*weights.shape[:2], *size).sum(axis=-1)
        np.testing.assert_allclose(sums, 1000, atol=size[1])
    tree = data(beam)
    assert [line["number"] for line in tree["lines"]] == numbers
    for line in tree["lines"]:
        assert line["results"][0]["text"] == outcome.lines[line["number"] - 1]


@pytest.mark.slow
def test_lines_left_out_of_a_page_are_counted(command, tiny_run, tmp_path, monkeypatch):
    from keras_seq_cli import pictures

    assert (pictures.LINES["html"], pictures.LINES["png"], pictures.LINES["beam"]) == (100, 20, 20)
    monkeypatch.setattr(pictures, "LINES", {"html": 2, "beam": 1})
    outcome = command(
        tiny_run, "--attention", "html", "--attention-file", tmp_path / "a.html",
        "--show-beam", tmp_path / "b.html", stdin=TEXT,
    )  # fmt: skip
    assert "a.html: shows the first 2 lines, omits 3" in outcome.err
    assert "b.html: shows the first 1 lines, omits 4" in outcome.err
    outcome = command(tiny_run, "--show-beam", tmp_path / "none.html", stdin=b"\n \n")
    assert outcome.code == 0 and "no line has a translation" in outcome.err
    assert not (tmp_path / "none.html").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("out.txt", ["-o"]),
        ("out.gz", ["-o"]),
        ("map.txt", ["--attention", "term", "--attention-file"]),
        ("page.html", ["--attention", "html", "--attention-file"]),
        ("image.png", ["--attention", "png", "--attention-file"]),
        ("beam.html", ["--show-beam"]),
    ],
)
def test_full_disk_is_reported_with_the_name_of_the_file(
    command, tiny_run, tmp_path, name, options
):
    (tmp_path / name).symlink_to("/dev/full")
    outcome = command(tiny_run, *options, tmp_path / name, stdin=b"5 mai 1999\n")
    assert outcome.code == 1
    assert outcome.error == f"{tmp_path / name}: no space left on device"


@pytest.mark.slow
@pytest.mark.weekly
def test_png_files_are_named_by_line_number(command, tiny_run, tmp_path):
    pytest.importorskip("matplotlib", reason="the extra plot is not installed")
    options = ["--attention", "png", "--attention-file"]
    outcome = command(tiny_run, "$x_1$ \U0001f600", *options, tmp_path / "one.png")
    assert said(outcome) == ""
    command(tiny_run, *options, tmp_path / "more.png", stdin=b"5 mai 1999\n\n6 mai 1999\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "more-1.png", "more-3.png", "one.png",
    ]  # fmt: skip
    assert all(path.read_bytes().startswith(MAGIC) for path in tmp_path.iterdir())


@pytest.fixture
def run_without_bytes(tiny_run, tmp_path):
    """The run without byte fallback, so that letters not seen in training are unknown."""
    from sentencepiece import sentencepiece_model_pb2

    shutil.copytree(tiny_run, tmp_path / "unknown")
    path = tmp_path / "unknown" / "tokenizer" / "joint.model"
    model = sentencepiece_model_pb2.ModelProto.FromString(path.read_bytes())
    model.trainer_spec.byte_fallback = False
    for piece in model.pieces:
        if piece.type == piece.BYTE:
            piece.type = piece.UNUSED
    path.write_bytes(model.SerializeToString())
    return tmp_path / "unknown"


@pytest.mark.slow
def test_unknown_tokens_are_replaced_by_words_of_the_source(command, run_without_bytes):
    # The forced prefix makes this model generate an unknown token.
    options = [run_without_bytes, "5 \u4e00\u4e8c 1999", "--prefix", "\u4e09"]
    plain, replaced = command(*options), command(*options, "--replace-unknown")
    assert (plain.code, replaced.code) == (0, 0)
    word = replaced.lines[0].split()[0]
    assert word.startswith(("5", "\u4e00\u4e8c", "1999"))
    assert not plain.lines[0].startswith(word)
    (one,) = objects(command(*options, "--replace-unknown", "--format", "jsonl"))
    assert one["translations"][0]["text"] == replaced.lines[0]
    assert "<unk>" in one["translations"][0]["tokens"]


@pytest.mark.usefixtures("without_tensorflow")
def test_translate_rejects_incompatible_output_options(
    keras_seq_command, tiny_run, tmp_path, monkeypatch
):
    (tmp_path / "in").write_text("a\n")
    (tmp_path / "begin").write_text("a\n")
    page = tmp_path / "page.html"
    for arguments, words in (
        (["--alignment", "soft"], "--alignment': soft needs --format jsonl"),
        (["--alignment", "both"], "'both' is not one of 'hard', 'soft'"),
        (["--attention", "html"], "html needs --attention-file"),
        (["--attention-file", page], "needs --attention term, html or png"),
        (["--attention-layer", 0], "needs --alignment, --replace-unknown or --attention"),
        (["--attention-head", 0], "--attention-head': needs --alignment"),
        (["--alignment", "hard", "--attention-layer", 1], "received 1, expected -1 to 0"),
        (["--alignment", "hard", "--attention-head", 2], "received 2, expected 0 to 1"),
        (["--attention", "html", "--attention-file", tmp_path], "cannot be written"),
        (
            ["--show-beam", tmp_path / "no" / "page.html"],
            "expected a file in an existing directory",
        ),
        (["--show-beam", f"{tmp_path}/new/"], "expected a file in an existing directory"),
        (["--show-beam", tmp_path / "in"], "is also the input or another output"),
        (["--show-beam", page, "--attention", "html", "--attention-file", page], "another output"),
        (["--show-beam", page, "--stream"], "not with --stream, because the file"),
        (["--attention", "html", "--attention-file", page, "--stream"], "not with --stream"),
        (["--show-beam", page, "--method", "sampling"], "needs --method beam"),
        (["--show-beam", page, "--prefixes", tmp_path / "begin"], "not with --prefixes"),
        (
            ["--show-beam", page, "--engine", "ctranslate2"],
            "not with --engine ctranslate2; use --engine",
        ),
        (
            ["--alignment", "hard", "--engine", "ctranslate2"],
            "not with --engine ctranslate2; use --engine",
        ),
        (["--replace-unknown", "--engine", "ctranslate2"], "--replace-unknown': not with --engine"),
        (["--alignment", "hard", "--ensemble", tiny_run], "not with --ensemble, whose models"),
    ):
        outcome = keras_seq_command("translate", tiny_run, tmp_path / "in", *arguments)
        assert (outcome.code, outcome.out) == (2, b""), arguments
        assert words in outcome.error
    for arguments in (["--format", "tsv"], ["--stream"], ["--progress"], ["--show-beam", page]):
        outcome = keras_seq_command(
            "translate", tiny_run, "--input", tmp_path / "in", "--output-dir", tmp_path / "out",
            *arguments,
        )  # fmt: skip
        assert outcome.code == 2
        assert f"{arguments[0]}': not with --input" in outcome.error
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    outcome = keras_seq_command(
        "translate", tiny_run, "hi", "--attention", "png", "--attention-file", tmp_path / "a.png"
    )
    assert "python -m pip install 'keras-seq[plot]'" in outcome.error
    assert not page.exists() and not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.weekly
def test_ctranslate2_writes_tsv_and_jsonl_like_tensorflow(command, tiny_run):
    pytest.importorskip("ctranslate2", reason="the extra ctranslate2 is not installed")
    for name in ("tsv", "jsonl"):
        options = ["--format", name, "--beam-size", "1"]
        expected = command(tiny_run, *options, stdin=TEXT)
        outcome = command(tiny_run, *options, "--engine", "ctranslate2", stdin=TEXT)
        rounded = [re.sub(rb"-\d+\.\d+", b"#", one.out) for one in (outcome, expected)]
        assert outcome.code == 0 and rounded[0] == rounded[1]


def test_tsv_of_empty_input_is_only_the_header(command, tiny_run):
    outcome = command(tiny_run, "--format", "tsv", "--alignment", "hard", stdin=b"")
    assert outcome.lines == ["line\trank\tscore\ttruncated\tsource\ttranslation\talignment"]
    assert command(tiny_run, "--format", "jsonl", stdin=b"").out == b""
