"""Preparation of a run from text, and errors for invalid text."""

import gzip
import os
import random

import numpy as np
import pytest
import sentencepiece

from keras_seq.data import TokenCorpus
from keras_seq.preparation import count_pairs, prepare_run, resolve_settings
from keras_seq.settings import SettingsError, load_settings
from keras_seq.text import InputError, PairFiles

WORDS = "the a dog cat bird tree house runs sleeps sings near under over big small".split()


def sentences(count: int, seed: int = 0) -> list[str]:
    generator = random.Random(seed)
    return [
        " ".join(generator.choices(WORDS, k=generator.randint(3, 7))) + f" {number}."
        for number in range(count)
    ]


@pytest.fixture
def corpus(tmp_path):
    """Returns a function that writes source and target files and returns their settings."""

    def write(source: bytes | list[str], target: bytes | list[str], **overrides):
        for name, content in (("train.en", source), ("train.de", target)):
            if isinstance(content, list):
                content = "".join(f"{line}\n" for line in content).encode()
            (tmp_path / name).write_bytes(content)
        return load_settings(
            overrides={
                "data.source": str(tmp_path / "train.en"),
                "data.target": str(tmp_path / "train.de"),
                **{key.replace("__", "."): value for key, value in overrides.items()},
            }
        )

    return write


@pytest.fixture
def prepared(tmp_path):
    """Returns a function that prepares a run and returns it with all notices."""

    def prepare(settings):
        notices: list[str] = []
        return prepare_run(settings, tmp_path / "run", notice=notices.append), notices

    return prepare


def test_prepare_run_splits_and_encodes_the_text(corpus, prepared):
    lines = sentences(400)
    run, notices = prepared(corpus(lines, [line.upper() for line in lines]))
    train, valid = TokenCorpus.open(run.train_directory), TokenCorpus.open(run.valid_directory)
    # One pair in twenty is held out for validation.
    assert (len(train), len(valid)) == (380, 20)
    sources, references = run.valid_lines()
    assert [line.upper() for line in sources] == references
    tokenizer = run.source_tokenizer
    assert tokenizer is run.target_tokenizer
    kept = tokenizer.decode([train.source(i) for i in range(380)])
    assert sorted(kept + sources) == sorted(lines)
    assert tokenizer.decode([valid.source(i) for i in range(20)]) == sources
    assert any("20 pairs held out" in line for line in notices)
    assert "training: 380 of 380 pairs kept" in notices
    # The stored setting is the actual vocabulary size, which is below the default.
    assert run.settings.tokenizer.size == tokenizer.vocabulary_size < 8000


def test_held_out_pairs_are_deterministic_for_a_seed(corpus, tmp_path):
    lines = sentences(100)
    held = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run = prepare_run(corpus(lines, lines, seed=seed), tmp_path / name)
        held.append(run.valid_lines()[0])
    assert held[0] == held[1] != held[2]


def test_held_out_sources_are_not_in_the_training_corpus(corpus, prepared):
    lines = sentences(50) * 4
    run, notices = prepared(corpus(lines, [f"{line} {n}" for n, line in enumerate(lines)]))
    train = TokenCorpus.open(run.train_directory)
    trained = set(run.source_tokenizer.decode([train.source(i) for i in range(len(train))]))
    held = set(run.valid_lines()[0])
    assert held and not held & trained
    assert any("share a source with one held out are left out" in line for line in notices)


def test_all_usable_pairs_of_given_validation_text_are_used(corpus, prepared, tmp_path):
    (tmp_path / "v.tsv").write_text("a dog\tein Hund\n\t\na cat\teine Katze\n")
    lines = sentences(30)
    run, _ = prepared(corpus(lines, lines, data__valid_pairs=str(tmp_path / "v.tsv")))
    assert run.valid_lines() == (["a dog", "a cat"], ["ein Hund", "eine Katze"])
    assert len(TokenCorpus.open(run.train_directory)) == 30


def test_separate_vocabularies_differ_for_source_and_target(corpus, prepared):
    lines = sentences(60)
    run, _ = prepared(corpus(lines, [line.upper() for line in lines], tokenizer__joint=False))
    assert run.source_tokenizer.to_bytes() != run.target_tokenizer.to_bytes()


def test_blank_pairs_are_dropped_and_counted(corpus, prepared):
    source = [*sentences(40), "", "   ", "x", "y"]
    target = [*sentences(40), "z", "z", "", "\t"]
    run, notices = prepared(corpus(source, target))
    assert len(TokenCorpus.open(run.train_directory)) == 38
    assert any("dropped 4 with an empty side" in line for line in notices)


def test_long_pairs_are_dropped_and_counted(corpus, prepared):
    lines = [*sentences(40), "dog " * 300_000, "d" * 1_000_000]
    run, notices = prepared(corpus(lines, [*sentences(40), "a", "b"], seed=3))
    assert len(TokenCorpus.open(run.train_directory)) + len(run.valid_lines()[0]) == 40
    assert any("dropped 2 longer than 200 or 200 tokens" in line for line in notices)


@pytest.mark.parametrize(
    "character", ["\r", "\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\x00"]
)
def test_only_a_newline_ends_a_training_line(corpus, prepared, character):
    lines = [f"{line}{character}{line}" for line in sentences(40)]
    settings = corpus(lines, sentences(40))
    assert count_pairs(settings.data)[:2] == (40, 40)
    run, _ = prepared(settings)
    assert len(TokenCorpus.open(run.train_directory)) + len(run.valid_lines()[0]) == 40
    assert all(line in lines for line in run.valid_lines()[0])


def test_bom_and_crlf_are_stripped_with_one_notice_each(corpus, prepared):
    lines = sentences(40)
    text = b"\xef\xbb\xbf" + "".join(f"{line}\r\n" for line in lines).encode()
    run, notices = prepared(corpus(text, lines))
    train = TokenCorpus.open(run.train_directory)
    found = run.source_tokenizer.decode([train.source(i) for i in range(len(train))])
    assert sorted(found + run.valid_lines()[0]) == sorted(lines)
    assert sum("byte order mark" in line for line in notices) == 1
    assert sum("CRLF" in line for line in notices) == 1


def test_the_last_line_needs_no_line_end(corpus):
    settings = corpus(b"one\ntwo", b"eins\nzwei\n")
    assert count_pairs(settings.data)[:2] == (2, 2)


def test_gzip_file_with_several_members_is_read_completely(corpus, tmp_path):
    lines = sentences(20)
    (tmp_path / "train.en.gz").write_bytes(
        b"".join(gzip.compress(f"{line}\n".encode()) for line in lines)
    )
    settings = corpus(lines, lines, data__source=str(tmp_path / "train.en.gz"))
    assert count_pairs(settings.data)[:2] == (20, 20)


def test_a_corpus_of_one_sentence_is_enough(corpus, prepared):
    run, notices = prepared(corpus(["A dog runs."], ["Ein Hund läuft."], tokenizer__kind="unigram"))
    assert len(TokenCorpus.open(run.train_directory)) == 1
    assert run.valid_lines() == (["A dog runs."], ["Ein Hund läuft."])
    assert any("vocabulary lowered from 8,000" in line for line in notices)
    assert any("validating on 1 of the training pairs" in line for line in notices)


def test_a_corpus_of_one_source_is_not_wholly_held_out(corpus, prepared):
    run, notices = prepared(corpus(["same"] * 40, sentences(40)))
    assert len(TokenCorpus.open(run.train_directory)) == 40
    assert any("too few different pairs" in line for line in notices)


def test_explicit_vocabulary_size_is_refused_instead_of_lowered(corpus, prepared, tmp_path):
    lines = sentences(40)
    with pytest.raises(InputError, match="50,000 is larger than this corpus allows: at most"):
        prepared(corpus(lines, lines, tokenizer__size=50_000))
    # No run directory remains, so the same command can be repeated.
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        (b"", b"", "empty, there is nothing to train on"),
        (b"a\nb\n", b"c\n", "train.en has 2 lines but .*train.de has 1"),
        (b"a\n", b"c\nd\n", "train.en has 1 lines but .*train.de has 2"),
        (b"\n \n", b"a\nb\n", r"no pair has text on both sides \(2 pairs\)"),
        (b"a\nb\xff\n", b"a\nb\n", "train.en:2: invalid UTF-8"),
    ],
)
def test_invalid_training_text_is_refused_and_leaves_no_run(
    corpus, prepared, tmp_path, source, target, words
):
    with pytest.raises(InputError, match=words):
        prepared(corpus(source, target))
    assert not (tmp_path / "run").exists()


def test_error_when_all_pairs_are_dropped_names_the_reason(corpus, prepared, tmp_path):
    lines = sentences(40)
    with pytest.raises(
        InputError, match="no training pair of 38 is left; dropped 38 longer than 1"
    ):
        prepared(corpus(lines, lines, data__max_source_length=1))
    assert not (tmp_path / "run").exists()


def test_overwrite_with_invalid_text_keeps_the_existing_run(corpus, prepared, tmp_path):
    lines = sentences(40)
    run, _ = prepared(corpus(lines, lines))
    with pytest.raises(InputError, match="nothing to train on"):
        prepare_run(corpus(b"", b""), run.path, overwrite=True)
    assert len(TokenCorpus.open(run.train_directory)) == 38


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({}, "no text to train on: give --source and --target, or --pairs"),
        ({"data.source": "a"}, "--source without --target: both are needed"),
        ({"data.target": "a"}, "--target without --source: both are needed"),
        ({"data.pairs": "a", "data.source": "b"}, "both --pairs and --source"),
        ({"data.pairs": "-"}, "standard input: the text is read more than once"),
        ({"data.pairs": "absent.tsv"}, "absent.tsv: no such file"),
        ({"data.pairs": os.curdir}, "is a directory"),
    ],
)
def test_missing_or_conflicting_text_files_raise_input_error(overrides, words):
    with pytest.raises(InputError, match=words):
        count_pairs(load_settings(overrides=overrides).data)


def test_invalid_validation_files_raise_input_error(corpus, prepared, tmp_path):
    lines = sentences(5)
    absent = str(tmp_path / "absent")
    for overrides, words in (
        ({"data__valid_source": absent}, "--valid-source without --valid-target"),
        ({"data__valid_pairs": absent}, "absent: no such file"),
    ):
        with pytest.raises(InputError, match=words):
            prepared(corpus(lines, lines, **overrides))


def test_preset_is_chosen_by_corpus_size_and_reported(corpus):
    lines = sentences(20)
    paths = corpus(lines, lines).data
    overrides = {"data.source": paths.source, "data.target": paths.target}
    notices: list[str] = []
    settings, counts = resolve_settings(overrides=overrides, notice=notices.append)
    assert counts[:2] == (20, 20)
    assert settings.model.units == 128
    assert notices[0] == (
        "preset transformer-tiny, chosen by the size of the corpus (20 pairs, at most 100,000)"
    )
    assert "in proportion to 20 pairs" in notices[1]
    settings, _ = resolve_settings(overrides=overrides | {"model.family": "rnn"})
    assert settings.model.family == "rnn"
    # Only recurrent models have this setting.
    settings, _ = resolve_settings(overrides=overrides | {"model.attention": "hard"})
    assert (settings.model.family, settings.model.attention) == ("rnn", "hard")
    settings, counts = resolve_settings(preset="rnn-base", overrides=overrides)
    assert (settings.model.family, counts) == ("rnn", None)
    with pytest.raises(SettingsError):
        resolve_settings(preset="rnn-bass", overrides=overrides)


def test_large_corpus_keeps_its_order(corpus, prepared):
    """A corpus much larger than a chunk keeps the order of its lines."""
    lines = [f"number {n}" for n in range(9000)]
    run, _ = prepared(corpus(lines, [str(n) for n in range(9000)], tokenizer__size=400))
    train = TokenCorpus.open(run.train_directory)
    numbers = [
        int(text) for text in run.target_tokenizer.decode(train.target(i) for i in range(8550))
    ]
    assert np.all(np.diff(numbers) > 0)


def trained_texts(run):
    """Returns the source text and weight of each training pair, in corpus order."""
    train = TokenCorpus.open(run.train_directory)
    numbers = range(len(train))
    texts = run.source_tokenizer.decode([train.source(i) for i in numbers])
    return list(zip(texts, train.weights(numbers).tolist(), strict=True))


def test_weights_stay_with_their_pairs_when_others_are_dropped(corpus, prepared, tmp_path):
    """Held-out, blank and zero-weight pairs do not shift the weights of the other pairs."""
    lines = [*sentences(100), "", "x"]
    weights = [number / 8 for number in range(102)]
    (tmp_path / "w").write_text("".join(f"{weight}\n" for weight in weights))
    settings = corpus(lines, [*lines[:100], "y", ""], data__weights=str(tmp_path / "w"))
    assert count_pairs(settings.data)[:2] == (102, 99)
    run, notices = prepared(settings)
    weight_of = dict(zip(lines, weights, strict=True))
    found = trained_texts(run)
    held = run.valid_lines()[0]
    # 4 of 99 usable pairs are held out; the first pair has weight 0 and is not usable.
    assert len(held) == 4 and lines[0] not in held
    assert [text for text, _ in found] == [line for line in lines[1:100] if line not in held]
    assert all(weight == weight_of[text] for text, weight in found)
    assert (
        "training: 95 of 98 pairs kept; dropped 2 with an empty side and 1 of weight 0" in notices
    )
    valid = TokenCorpus.open(run.valid_directory)
    assert not valid.has_weights


def test_invalid_weights_file_raises_input_error(corpus, prepared, tmp_path):
    lines = sentences(3)
    for content, words in (
        ("1\n\n1\n", "w:2: received '', expected one number from 0 to 1,000,000,000"),
        ("1\n1\n", "train.en has 3 lines but .*w has 2"),
        ("0\n0\n0\n", r"no pair has text on both sides and a weight above 0 \(3 pairs\)"),
    ):
        (tmp_path / "w").write_text(content)
        with pytest.raises(InputError, match=words):
            prepared(corpus(lines, lines, data__weights=str(tmp_path / "w")))
        assert not (tmp_path / "run").exists()


def test_file_weights_apply_to_each_of_many_files(tmp_path, prepared):
    for number in (1, 2, 3):
        lines = "".join(f"{line} {number}\t{line}\n" for line in sentences(10, seed=number))
        (tmp_path / f"part-{number}.tsv").write_text(lines)
    (tmp_path / "valid.tsv").write_text("a\tb\n")
    settings = load_settings(
        overrides={
            "data.pairs": str(tmp_path / "part-?.tsv"),
            "data.valid_pairs": str(tmp_path / "valid.tsv"),
            "data.file_weights": "[1, 0, 2.5]",
        }
    )
    run, notices = prepared(settings)
    assert [(text[-1], weight) for text, weight in trained_texts(run)] == (
        [("1", 1.0)] * 10 + [("3", 2.5)] * 10
    )
    assert "training: 20 of 30 pairs kept; dropped 10 of weight 0" in notices
    # The vocabulary is learned only from training pairs.
    pieces = run.source_tokenizer
    assert max(len(ids) for ids in pieces.encode(["2"])) > len(pieces.encode(["3"])[0])


def test_links_between_words_become_links_between_tokens(corpus, prepared, tmp_path):
    """Each target line is its source line in reverse; the links connect equal words."""
    # The normalization nmt_nfkc removes control characters.
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(sentences(60)),
        model_prefix=str(tmp_path / "nmt"),
        vocab_size=300,
        hard_vocab_limit=False,
        byte_fallback=True,
        normalization_rule_name="nmt_nfkc",
        minloglevel=3,
    )
    lines = [*sentences(60), "dog\x01 \x01 cat", "", "the " * 300]
    turned = [" ".join(reversed(line.split())) for line in lines]
    links = [
        " ".join(f"{word}-{count - 1 - word}" for word in range(count))
        for count in (len(line.split()) for line in lines)
    ]
    # One pair has no links.
    links[5] = ""
    (tmp_path / "links").write_text("".join(f"{line}\n" for line in links))
    (tmp_path / "valid.tsv").write_text("a\tb\n")
    run, notices = prepared(
        corpus(
            lines,
            turned,
            data__alignments=str(tmp_path / "links"),
            data__valid_pairs=str(tmp_path / "valid.tsv"),
            tokenizer__model=str(tmp_path / "nmt.model"),
        )
    )
    assert (
        "alignments: 1 of 60 pairs have links to words that leave no tokens; "
        "these links are dropped" in notices
    )
    train, tokenizer = TokenCorpus.open(run.train_directory), run.source_tokenizer
    assert len(train) == 61 and not TokenCorpus.open(run.valid_directory).has_alignments
    for index, line in enumerate(lines[:61]):
        source, target = train.source(index), train.target(index)
        words = tokenizer.encode(line.replace("\x01", "").split())
        # The tokens of a word begin where the tokens of the words before it end.
        begins = np.cumsum([0, *map(len, words)])
        expected = set()
        for word, ids in enumerate(words):
            target_begin = len(target) - begins[word + 1]
            assert target[target_begin : target_begin + len(ids)].tolist() == ids
            for one in range(len(ids)):
                for other in range(len(ids)):
                    expected.add((begins[word] + one, target_begin + other))
        found = {(one, other) for _, one, other in train.links([index]).tolist()}
        assert len(source) == begins[-1]
        assert found == (set() if index == 5 else expected)


def test_invalid_links_file_raises_input_error(corpus, prepared, tmp_path):
    lines = ["a b c"] * 3
    for content, words in (
        ("0-0\n0-3\n0-0\n", "links:2: 0-3 links target word 3, but the target line has 3 words"),
        ("0-0\n0-0 1\n0-0\n", "links:2: received '1', expected links as in '0-0 1-2'"),
        ("\n\n", "train.en has 3 lines but .*links has 2"),
    ):
        (tmp_path / "links").write_text(content)
        with pytest.raises(InputError, match=words):
            prepared(corpus(lines, lines, data__alignments=str(tmp_path / "links")))
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("joint", "passes"), [(True, 4), (False, 5)])
def test_text_is_read_once_to_count_hold_out_learn_and_encode(
    corpus, tmp_path, monkeypatch, joint, passes
):
    """Each of two separate vocabularies needs its own pass."""
    lines = sentences(400)
    settings = corpus(lines, lines, tokenizer__joint=joint, tokenizer__kind="unigram")
    count, read = 0, PairFiles.read

    def counting(self, *arguments):
        nonlocal count
        for example in read(self, *arguments):
            count += 1
            yield example

    monkeypatch.setattr(PairFiles, "read", counting)
    prepare_run(settings, tmp_path / "run")
    # One further pass stops at the first pair that is not held out.
    assert passes * 400 < count < passes * 400 + 20
