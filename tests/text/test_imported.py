"""Imported vocabularies, compared with the library that created them."""

import json

import pytest
import sentencepiece
from tokenizers import Tokenizer as Original
from tokenizers import models, pre_tokenizers, trainers

from keras_seq.text import InputError, date_pairs, import_tokenizer

SENTENCES = [text for pair in date_pairs(500, seed=4) for text in pair]
LINES = [*SENTENCES[:200], "½ ＡＢ 漢 <s> x <2de>"]
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


@pytest.mark.parametrize(
    "options",
    [
        {"model_type": "unigram"},
        {"model_type": "bpe", "byte_fallback": True},
        {"model_type": "char"},
        {"model_type": "word"},
        {
            "model_type": "unigram",
            "unk_id": 2,
            "bos_id": 0,
            "eos_id": 1,
            "pad_id": 3,
            "user_defined_symbols": ["<2de>"],
            "normalization_rule_name": "nfkc_cf",
        },
    ],
    ids=["unigram", "bpe", "char", "word", "other ids"],
)
def test_sentencepiece_model_has_the_same_pieces_for_every_line(tmp_path, options):
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(SENTENCES),
        model_prefix=str(tmp_path / "spm"),
        vocab_size=600,
        hard_vocab_limit=False,
        minloglevel=3,
        **options,
    )
    original = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "spm.model"))
    tokenizer = import_tokenizer(tmp_path / "spm.model")
    for line, ids in zip(LINES, tokenizer.encode(LINES), strict=True):
        expected = original.encode(line, out_type=str)
        known = [
            piece if original.piece_to_id(piece) != original.unk_id() else "<unk>"
            for piece in expected
        ]
        assert [tokenizer.pieces[id].text for id in ids] == known
    assert [piece.text for piece in tokenizer.pieces[:4]] == ["<pad>", "<unk>", "<s>", "</s>"]


def unigram() -> Original:
    tokenizer = Original(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    trainer = trainers.UnigramTrainer(
        vocab_size=500, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return tokenizer


def bpe() -> Original:
    tokenizer = Original(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return tokenizer


def byte_level() -> Original:
    tokenizer = Original(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.train_from_iterator(
        SENTENCES, trainers.BpeTrainer(vocab_size=400, show_progress=False)
    )
    return tokenizer


def word_piece() -> Original:
    tokenizer = Original(models.WordPiece(unk_token="[UNK]"))
    tokenizer.train_from_iterator(
        SENTENCES,
        trainers.WordPieceTrainer(vocab_size=300, special_tokens=["[UNK]"], show_progress=False),
    )
    return tokenizer


@pytest.mark.parametrize("make", [unigram, bpe])
def test_tokenizer_json_has_the_same_tokens_for_every_line(tmp_path, make):
    original = make()
    original.save(str(tmp_path / "tokenizer.json"))
    tokenizer = import_tokenizer(tmp_path / "tokenizer.json", SENTENCES)
    for line, ids in zip(SENTENCES, tokenizer.encode(SENTENCES), strict=True):
        assert [tokenizer.pieces[id].text for id in ids] == original.encode(line).tokens
    assert tokenizer.decode(tokenizer.encode(SENTENCES[:50])) == SENTENCES[:50]


@pytest.mark.parametrize(
    ("make", "words"), [(byte_level, "byte-level BPE"), (word_piece, "its model is WordPiece")]
)
def test_what_a_model_server_cannot_cut_is_refused(tmp_path, make, words):
    make().save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(InputError, match=words):
        import_tokenizer(tmp_path / "tokenizer.json")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not a SentencePiece model|no pieces"),
        (b"garbage" * 99, "not a SentencePiece model"),
        (b"{}", "not a tokenizer.json"),
        (b'{"model": {"type": "BPE"}}', "not a tokenizer.json"),
        (b"{" * 100_000, "not a tokenizer.json"),
        (b'{"model": {"type": "Unigram", "vocab": 3}}', "not a tokenizer.json"),
    ],
)
def test_other_files_are_refused_in_one_line(tmp_path, content, words):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(InputError, match=words) as error:
        import_tokenizer(tmp_path / "file")
    assert "\n" not in str(error.value)


PADDING = {
    "strategy": {"Fixed": 10**15},
    "direction": "Right",
    "pad_to_multiple_of": None,
    "pad_id": 0,
    "pad_type_id": 0,
    "pad_token": "[PAD]",
}
# The library panics, because the stride must be shorter than the length.
TRUNCATION = {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 5}


@pytest.mark.parametrize("change", [{"padding": PADDING}, {"truncation": TRUNCATION}], ids=str)
def test_padding_and_truncation_change_no_token(tmp_path, change):
    original = unigram()
    stored = json.loads(original.to_str()) | change
    (tmp_path / "tokenizer.json").write_text(json.dumps(stored))
    tokenizer = import_tokenizer(tmp_path / "tokenizer.json", SENTENCES)
    for line, ids in zip(SENTENCES, tokenizer.encode(SENTENCES), strict=True):
        assert [tokenizer.pieces[id].text for id in ids] == original.encode(line).tokens


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="not a file"):
        import_tokenizer(tmp_path / "absent")
