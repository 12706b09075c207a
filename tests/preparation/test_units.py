"""The choice of vocabularies for a corpus if the settings do not name them."""

import pytest

from keras_seq.preparation import count_pairs, open_or_prepare, resolve_settings
from keras_seq.preparation.units import with_units
from keras_seq.settings import SettingsError, load_settings
from keras_seq.text import InputError, Tokenizer, date_pairs

PHONES = [("kata", "k a tʰ a"), ("taka", "tʰ a k a"), ("atta", "a tʰː a"), ("kak", "k a k")] * 30
SENTENCES = [
    (
        f"The dog number {n} saw {n * n} cats in the garden.",
        f"Hund {n} sah {n * n} Katzen im Garten.",
    )
    for n in range(200)
]
SYLLABLES = [(chr(0xAC00 + 7 * n) + chr(0xAC00 + 11 * n), "x y z") for n in range(300)]


@pytest.fixture
def prepare(tmp_path):
    """Returns a function that prepares a run from pairs and returns it with all notices."""

    def call(pairs, **overrides):
        path = tmp_path / "pairs.tsv"
        path.write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
        notices: list[str] = []
        values = {key.replace("__", "."): value for key, value in overrides.items()}
        settings, counts = resolve_settings(
            overrides={"data.pairs": str(path), **values}, notice=notices.append
        )
        run = open_or_prepare(settings, tmp_path / "run", notice=notices.append, counts=counts)
        run.unlock()
        return run, notices

    return call


@pytest.mark.parametrize(
    ("pairs", "kinds", "forms"),
    [
        (PHONES, ("char", "word"), ("nfc", "nfc")),
        (SENTENCES, ("unigram", "unigram"), ("nfc", "nfc")),
        (SYLLABLES, ("char", "word"), ("nfd", "nfc")),
        ([(a, b) for b, a in PHONES], ("word", "char"), ("nfc", "nfc")),
    ],
    ids=["pronunciations", "sentences", "syllables", "spellings of phones"],
)
def test_units_are_chosen_from_the_text_and_reported(prepare, pairs, kinds, forms):
    run, notices = prepare(pairs)
    tokenizers = (run.source_tokenizer, run.target_tokenizer)
    assert tuple(one.kind for one in tokenizers) == kinds
    assert tuple(one.rules.form for one in tokenizers) == forms
    assert (tokenizers[0] is tokenizers[1]) == (kinds == ("unigram", "unigram"))
    assert sum("vocabulary of" in line and ":" in line for line in notices) == 2
    # The stored settings contain the chosen kinds instead of "auto".
    assert "auto" not in str(run.settings.tokenizer)
    assert [run.settings.tokenizer.of_side(side).kind for side in ("source", "target")] == [*kinds]


def test_every_training_target_comes_back(prepare):
    targets = ["kʰ ½", "ﬁ  ２", "  two spaces", "tab\u00a0é", "①"] * 30
    run, notices = prepare([("word", target) for target in targets])
    assert run.target_tokenizer.decode(run.target_tokenizer.encode(targets)) == targets
    assert not any("change when encoded" in line for line in notices)


def test_targets_that_a_setting_changes_are_counted_and_shown(prepare):
    pairs = [(f"k{n}", "k a tʰ a" if n % 2 else "k a k") for n in range(100)]
    _, notices = prepare(pairs, tokenizer__target__normalization="nfkc")
    [line] = [line for line in notices if "change when encoded" in line]
    # Half of the pairs change, except for pairs held out for validation.
    assert 40 <= int(line.split(" ")[0]) <= 50
    assert "'k a tʰ a' becomes 'k a th a'" in line


def test_extra_spaces_of_the_source_are_kept_only_if_they_are_usual(prepare):
    rare = [(f" {a}" if n == 0 else a, b) for n, (a, b) in enumerate(PHONES)] * 3
    run, _ = prepare(rare)
    assert run.source_tokenizer.decode(run.source_tokenizer.encode([" kata"])) == ["kata"]


def test_extra_spaces_of_an_indented_source_are_kept(prepare):
    run, _ = prepare([(f"  {a}", b) for a, b in PHONES])
    assert run.source_tokenizer.decode(run.source_tokenizer.encode(["  kata"])) == ["  kata"]


def test_each_side_has_settings_of_its_own(prepare):
    run, _ = prepare(
        PHONES, tokenizer__source__kind="byte", tokenizer__target__symbols=["tʰː", "<x>"]
    )
    assert (run.source_tokenizer.kind, run.target_tokenizer.kind) == ("byte", "word")
    symbols = [piece.text for piece in run.target_tokenizer.pieces if piece.is_symbol]
    assert symbols == ["tʰː", "<x>"]
    assert not any(piece.is_symbol for piece in run.source_tokenizer.pieces)


def test_run_is_resumed_with_the_same_units(prepare, tmp_path):
    run, _ = prepare(PHONES)
    again, notices = prepare(PHONES)
    assert again.settings == run.settings
    # The second call prepares nothing.
    assert not any("learned" in line for line in notices)
    with pytest.raises(InputError, match=r"tokenizer\.source\.kind char -> byte"):
        prepare(PHONES, tokenizer__source__kind="byte")


def test_vocabulary_of_a_file_is_imported(prepare, tmp_path):
    file = tmp_path / "made.model"
    file.write_bytes(Tokenizer.train(["k a t ʰ ː x"], kind="char").to_bytes())
    run, notices = prepare(PHONES, tokenizer__model=str(file))
    assert any(f"of {file}" in line for line in notices)
    assert run.source_tokenizer is run.target_tokenizer
    assert run.settings.tokenizer.kind == "char"


def test_joint_vocabulary_is_one_where_it_was_asked_for(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in PHONES), encoding="utf-8")
    base = {"data.pairs": str(path), "tokenizer.joint": True}
    settings = load_settings(overrides=base)
    found = with_units(settings, count_pairs(settings.data)).tokenizer
    assert found.joint and found.kind == "unigram"
    wrong = load_settings(overrides={**base, "tokenizer.source.kind": "char"})
    with pytest.raises(SettingsError, match=r"joint: received True with tokenizer\.source\.kind"):
        with_units(wrong, count_pairs(settings.data))


def test_dates_are_subwords_and_characters(prepare):
    run, _ = prepare(date_pairs(300))
    assert (run.source_tokenizer.kind, run.target_tokenizer.kind) == ("char", "char")


@pytest.mark.parametrize(
    ("overrides", "family"),
    [
        ({}, "transformer"),
        ({"model.dropout": 0.1}, "transformer"),
        ({"model.encoder_units": 4}, "rnn"),
        ({"model.units": 16, "model.num_heads": 2}, "transformer"),
        ({"model.family": "transformer"}, "transformer"),
        ({"model.family": "rnn", "model.encoder_units": 4}, "rnn"),
    ],
    ids=str,
)
def test_given_settings_of_the_model_keep_its_family(tmp_path, overrides, family):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in PHONES), encoding="utf-8")
    settings, _ = resolve_settings(overrides={"data.pairs": str(path), **overrides})
    assert settings.model.family == family


def label_text(folder):
    """Writes rare words, for which subwords are chosen, and returns the settings of a tagger."""
    words = [f"{stem}{ending}" for stem in "abcdefgh" for ending in ("ing", "ed", "s", "er", "est")]
    lines = (f"{one}{two} lies on {two} now\tN V P N A\n" for one in words for two in words)
    (folder / "tagged.tsv").write_text("".join(lines))
    return {"task": "tag", "data.labeled": str(folder / "tagged.tsv"), "model.form_units": 4}


def test_models_that_read_characters_get_a_vocabulary_of_words(tmp_path):
    values = label_text(tmp_path)
    notices: list[str] = []
    settings = load_settings(preset="tag-transformer", overrides=values)
    run = open_or_prepare(settings, tmp_path / "run", notice=notices.append)
    run.unlock()
    assert run.source_tokenizer.kind == "word"
    reason = "vocabulary of words: the model reads the characters of whole words"
    assert reason in notices
    without = load_settings(preset="tag-transformer", overrides=values | {"model.form_units": 0})
    assert with_units(without, count_pairs(without.data)).tokenizer.kind == "unigram"


@pytest.mark.parametrize("kind", ["unigram", "bpe", "char", "byte"])
def test_models_that_read_characters_refuse_parts_of_words(tmp_path, kind):
    overrides = label_text(tmp_path) | {"tokenizer.kind": kind, "model.character_filters": 3}
    settings = load_settings(preset="tag-transformer", overrides=overrides)
    message = f"tokenizer.kind: received '{kind}', expected 'word' with model.character_filters and"
    with pytest.raises(SettingsError, match=message):
        open_or_prepare(settings, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_models_that_read_characters_refuse_an_imported_vocabulary_of_subwords(tmp_path):
    values = label_text(tmp_path)
    file = tmp_path / "subwords.model"
    file.write_bytes(Tokenizer.train(["aing lies on bed"] * 9, size=280).to_bytes())
    settings = load_settings(
        preset="tag-transformer", overrides=values | {"tokenizer.model": str(file)}
    )
    message = f"kind: received 'unigram' in {file}, expected 'word' with model.form_units: the mod"
    with pytest.raises(SettingsError, match=message):
        open_or_prepare(settings, tmp_path / "run")
    assert not (tmp_path / "run").exists()
