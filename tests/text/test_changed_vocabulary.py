"""The mapping from pieces of a new vocabulary to pieces of an old vocabulary."""

import pytest

from keras_seq.text import Tokenizer, pieces_in

OLD = ["A dog runs fast. doing going"] * 3 + ["low lower lowest newer newest"] * 4
NEW = ["A dog sings slow and slower 狗 est"] * 4 + ["lowering newerest ést"] * 3


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def cut(request):
    old = Tokenizer.train(OLD, size=310, kind=request.param)
    new = Tokenizer.train(NEW, size=330, kind=request.param)
    return old, new, pieces_in(old, new)


def test_piece_in_both_vocabularies_maps_to_itself(cut):
    old, new, found = cut
    assert len(found) == new.vocabulary_size
    # Every vocabulary has the special ids and the bytes.
    assert found[:4] == [[0], [1], [2], [3]]
    texts = {piece.text: id for id, piece in enumerate(old.pieces)}
    both = [id for id, piece in enumerate(new.pieces) if piece.text in texts]
    assert len(both) > 265
    for id in both:
        assert found[id] == [texts[new.pieces[id].text]]


def test_new_piece_maps_to_the_old_pieces_that_spell_it(cut):
    """The old pieces spell exactly the new piece if the old vocabulary has its characters."""
    old, new, found = cut
    texts = {piece.text for piece in old.pieces}
    characters = set("".join(piece.text for piece in old.pieces if piece.is_text))
    checked = 0
    for piece, ids in zip(new.pieces, found, strict=True):
        if piece.is_text and piece.text not in texts and set(piece.text) <= characters:
            spelled = "".join(old.pieces[id].text for id in ids)
            assert spelled.lstrip("\u2581") == piece.text.lstrip("\u2581")
            checked += 1
    assert checked > 3


def test_a_piece_from_inside_a_word_is_cut_as_inside_a_word():
    """The piece "ogs" occurs only inside words, so it starts with "og", not with "▁og"."""
    old = Tokenizer.train(["og og og frog frog frog"] * 20, size=270, kind="bpe")
    texts = [piece.text for piece in old.pieces]
    assert "og" in texts and "\u2581og" in texts
    new = Tokenizer.train(["bogs clogs dogs togs logs"] * 20, size=276, kind="bpe")
    inside = next(id for id, piece in enumerate(new.pieces) if piece.text == "ogs")
    found = [old.pieces[id].text for id in pieces_in(old, new)[inside]]
    assert found[0] == "og"


def test_piece_that_only_bytes_can_spell_maps_to_nothing(cut):
    _, new, found = cut
    chinese = [id for id, piece in enumerate(new.pieces) if piece.text.strip("\u2581") == "狗"]
    assert chinese and all(found[id] == [] for id in chinese)
