"""The tokenizer, compared with Unicode normalization and tested with malicious text."""

import os
import subprocess
import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_seq.text import BOS_ID, EOS_ID, PAD_ID, UNK_ID, InputError, Tokenizer, date_pairs

KINDS = ("unigram", "bpe")
SENTENCES = [text for pair in date_pairs(2000, seed=5) for text in pair]
# Letters, digits, marks and symbols that all current Unicode versions normalize equally.
LETTERS = st.characters(
    categories=["Lu", "Ll", "Lo", "Nd", "Mn", "Po", "Sm", "Sc"], max_codepoint=0x2FFF
).filter(lambda character: unicodedata.ucd_3_2_0.category(character) != "Cn")


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request):
    return Tokenizer.train(SENTENCES, size=1000, kind=request.param)


def back(tokenizer: Tokenizer, line: str) -> str:
    [ids] = tokenizer.encode([line])
    assert all(EOS_ID < token < tokenizer.vocabulary_size for token in ids)
    return tokenizer.decode([ids])[0]


def test_tokenizer_has_fixed_special_ids_and_the_requested_size(tokenizer):
    assert (PAD_ID, UNK_ID, BOS_ID, EOS_ID) == (0, 1, 2, 3)
    assert tokenizer.vocabulary_size == 1000
    assert max(map(max, tokenizer.encode(SENTENCES))) < 1000


def test_vocabulary_size_defaults_to_8000():
    notices = []
    sentences = [text for pair in date_pairs(30_000) for text in pair]
    tokenizer = Tokenizer.train(sentences, notice=notices.append)
    assert tokenizer.vocabulary_size == 8000 and notices == []


def test_training_text_survives_encode_and_decode(tokenizer):
    ids = tokenizer.encode(SENTENCES)
    expected = [unicodedata.normalize("NFC", line) for line in SENTENCES]
    assert tokenizer.decode(ids) == expected
    # The pieces are subwords, not single letters.
    assert sum(map(len, ids)) < 0.5 * sum(map(len, SENTENCES))


@given(st.text(LETTERS | st.just(" ")))
def test_any_text_decodes_to_its_normalized_form(tokenizer, line):
    assert back(tokenizer, line) == " ".join(unicodedata.normalize("NFC", line).split())


@given(st.text())
def test_encode_and_decode_is_idempotent(tokenizer, line):
    once = back(tokenizer, line)
    assert "\n" not in once and "\r" not in once
    assert back(tokenizer, once) == once


@given(st.lists(st.text()))
def test_encoding_of_a_line_does_not_depend_on_its_batch(tokenizer, lines):
    together = tokenizer.encode(lines)
    assert together == [tokenizer.encode([line])[0] for line in lines]
    assert tokenizer.decode(together) == [back(tokenizer, line) for line in lines]


def test_a_large_batch_is_encoded_as_a_small_one(tokenizer):
    assert tokenizer.encode(SENTENCES) == [tokenizer.encode([line])[0] for line in SENTENCES]


@pytest.mark.parametrize(
    "line", ["😀👩‍👩‍👧🏳️‍🌈", "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ", "𐎀𐎁𐎂", "ꦲꦏ꧀ꦱꦫ", "한국어 日本語", "\U0010fffd", "\ue000"]
)
def test_unseen_scripts_survive_encode_and_decode(tokenizer, line):
    assert back(tokenizer, line) == line


@pytest.mark.parametrize(
    "line", ["Crème brûlée", "mañana Ångström", "Việt Nam", "がぎぐ", "İstanbul"]
)
def test_composed_and_decomposed_accents_give_the_same_ids(tokenizer, line):
    composed, decomposed = (unicodedata.normalize(form, line) for form in ("NFC", "NFD"))
    assert composed != decomposed
    assert tokenizer.encode([composed]) == tokenizer.encode([decomposed])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("in_training", [False, True], ids=["unseen", "trained on"])
def test_names_of_special_pieces_are_encoded_as_plain_text(kind, in_training):
    line = "<s> </s> <pad> <unk> <0x41> <0x0A> <s></s><unk>"
    sentences = SENTENCES[:200] + [line] * 100 * in_training
    tokenizer = Tokenizer.train(sentences, size=500, kind=kind)
    assert back(tokenizer, line) == line


@pytest.mark.parametrize("line", ["", " ", "\t", "\u3000", " \x1c\x85\u2028"])
def test_a_blank_line_has_no_ids(tokenizer, line):
    assert tokenizer.encode(["a", line, "b"])[1] == []
    assert tokenizer.decode([[], []]) == ["", ""]


def test_empty_batch_encodes_and_decodes_to_an_empty_list(tokenizer):
    assert tokenizer.encode([]) == []
    assert tokenizer.decode([]) == []


def test_lone_surrogates_are_encoded_as_the_replacement_character(tokenizer):
    surrogate = os.fsdecode(b"caf\xe9")
    assert tokenizer.encode([surrogate]) == tokenizer.encode(["caf\ufffd"])


@pytest.mark.parametrize("kind", KINDS)
def test_one_megabyte_line_can_be_trained_on_and_encoded(kind):
    for line in ("x" * 1_000_000, "ab c " * 200_000):
        tokenizer = Tokenizer.train([line], kind=kind)
        [ids] = tokenizer.encode([line])
        assert tokenizer.decode([ids]) == [line]


def test_long_training_lines_are_not_skipped():
    # SentencePiece itself skips training lines of more than 4,192 bytes.
    words = [word for line in SENTENCES for word in line.split()]
    tokenizer = Tokenizer.train([" ".join(words)], size=1000)
    assert tokenizer.to_bytes() != Tokenizer.train(["a"], size=1000).to_bytes()
    ids = tokenizer.encode(SENTENCES)
    assert sum(map(len, ids)) < 0.5 * sum(map(len, SENTENCES))


@pytest.mark.parametrize("kind", KINDS)
def test_training_is_deterministic(kind):
    models = {Tokenizer.train(iter(SENTENCES), size=700, kind=kind).to_bytes() for _ in range(3)}
    assert len(models) == 1


TRAIN_AND_HASH = """
import hashlib
from keras_seq.text import Tokenizer, date_pairs
sentences = [text for pair in date_pairs(500) for text in pair]
print(hashlib.sha256(Tokenizer.train(sentences, size=500, sample_size=300).to_bytes()).hexdigest())
"""


def test_training_is_the_same_in_another_process():
    hashes = {
        subprocess.run(
            [sys.executable, "-c", TRAIN_AND_HASH],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in "01"
    }
    assert len(hashes) == 1


def test_training_prints_nothing(capfd):
    Tokenizer.train(SENTENCES, size=600)
    Tokenizer.train(["a"])
    for sentences in ([], ["\t"]):
        with pytest.raises(InputError):
            Tokenizer.train(sentences)
    with pytest.raises(InputError):
        Tokenizer.from_bytes(b"garbage")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sentence", ["A dog runs.", "a", "犬", "\u2585 a", "😀", "<s>", "a\0b"])
def test_one_sentence_trains_with_a_notice(kind, sentence):
    notices = []
    tokenizer = Tokenizer.train([sentence], kind=kind, notice=notices.append)
    assert back(tokenizer, sentence) == sentence
    [notice] = notices
    assert "lowered from 8,000 to" in notice and f"{tokenizer.vocabulary_size:,}" in notice


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 30, 300])
def test_too_large_a_vocabulary_is_refused_with_a_maximum_that_works(kind, count):
    sentences = SENTENCES[:count]
    with pytest.raises(InputError, match=r"16,000 is larger .* at most [\d,]+ ") as caught:
        Tokenizer.train(sentences, size=16_000, kind=kind, lower_if_small=False)
    maximum = int(str(caught.value).split("at most ")[1].split()[0].replace(",", ""))
    tokenizer = Tokenizer.train(sentences, size=maximum, kind=kind, lower_if_small=False)
    assert tokenizer.vocabulary_size == maximum
    assert Tokenizer.train(sentences, size=16_000, kind=kind).vocabulary_size == maximum


@pytest.mark.parametrize("kind", KINDS)
def test_too_small_a_vocabulary_is_refused_with_a_minimum_that_works(kind):
    with pytest.raises(InputError, match=r"100 is too small .* at least \d+ ") as caught:
        Tokenizer.train(SENTENCES, size=100, kind=kind)
    minimum = int(str(caught.value).split("at least ")[1].split()[0].replace(",", ""))
    assert Tokenizer.train(SENTENCES, size=minimum, kind=kind).vocabulary_size == minimum


@pytest.mark.parametrize("sentences", [[], ["", "  "], ["\t"], ["\u2585"]])
def test_a_corpus_without_text_is_refused(sentences):
    with pytest.raises(InputError, match="add sentences"):
        Tokenizer.train(sentences)


@pytest.mark.parametrize(
    "choice",
    [{"size": 0}, {"size": 2_000_000}, {"size": 1.5}, {"kind": "letters"}, {"sample_size": 0}],
)
def test_invalid_train_argument_is_named_in_the_error(choice):
    with pytest.raises(ValueError, match=next(iter(choice))):
        Tokenizer.train(["a"], **choice)


def test_a_large_corpus_is_sampled_with_a_notice():
    notices = []
    sentences = [f"only {number}" for number in range(5000)]
    tokenizer = Tokenizer.train(iter(sentences), sample_size=1000, notice=notices.append)
    assert "a sample of 1,000 of 5,000" in notices[0]
    other = Tokenizer.train(iter(sentences), sample_size=1000, seed=2)
    assert tokenizer.to_bytes() != other.to_bytes()


@pytest.mark.slow
def test_training_sample_is_uniform():
    """Each of 60 one-letter sentences is in about a third of 600 samples of 20 sentences.

    The count of a sentence is binomial (600, 1/3) with a standard deviation of 11.5. Any of the
    60 counts is off by five standard deviations once in 30,000 such tests; the seeds are fixed.
    """
    letters = [chr(0x4E00 + number) for number in range(60)]
    drawn = dict.fromkeys(letters, 0)
    for seed in range(600):
        tokenizer = Tokenizer.train(letters, sample_size=20, seed=seed)
        for letter, ids in zip(letters, tokenizer.encode(letters), strict=True):
            # A letter that is not in the sample is encoded as three bytes.
            drawn[letter] += len(ids) <= 2
    assert sum(drawn.values()) == 20 * 600
    assert all(abs(count - 200) < 5 * 11.5 for count in drawn.values())


def test_digits_are_split_when_asked():
    whole = Tokenizer.train(SENTENCES, size=1000)
    split = Tokenizer.train(SENTENCES, size=1000, split_digits=True)
    assert len(whole.encode(["2026"])[0]) < len(split.encode(["2026"])[0]) == 5


def test_encode_refuses_anything_but_a_list_of_strings(tokenizer):
    with pytest.raises(TypeError, match=r"encode\(\[line\]\)"):
        tokenizer.encode("one string")
    with pytest.raises(TypeError, match=r"lines\[1\] must be a string, not NoneType"):
        tokenizer.encode(["a", None])


def test_decoding_drops_special_ids(tokenizer):
    [ids] = tokenizer.encode(["5 March"])
    rows = np.array([[BOS_ID, UNK_ID, *ids, EOS_ID, PAD_ID, PAD_ID]], "int32")
    assert tokenizer.decode(rows) == tokenizer.decode(rows.tolist()) == ["5 March"]
    assert tokenizer.decode([[PAD_ID, UNK_ID, BOS_ID, EOS_ID]]) == [""]


def test_decoding_never_breaks_a_line(tokenizer):
    # Byte pieces follow the special ids, so byte 0x0A has id 14.
    newline, carriage_return, letter = 4 + 0x0A, 4 + 0x0D, 4 + 0x41
    line = [letter, newline, letter, carriage_return, letter]
    assert tokenizer.decode([line]) == ["A A A"]


def test_decoding_invalid_bytes_gives_the_replacement_character(tokenizer):
    assert tokenizer.decode([[4 + 0xC3, 4 + 0x41]]) == ["\ufffdA"]


@pytest.mark.parametrize("wrong", [-1, 1000, 2**31, 2**70])
def test_decoding_an_id_out_of_range_raises_value_error(tokenizer, wrong):
    with pytest.raises(ValueError, match=rf"ids\[1\] has {wrong}, expected ids from 0 to 999"):
        tokenizer.decode([[5], [5, wrong]])
