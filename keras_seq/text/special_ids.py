"""Token ids with a fixed meaning, the same in every vocabulary of this package."""

PAD_ID = 0
UNK_ID = 1
BOS_ID = 2
EOS_ID = 3
# The tag of all tokens of a word except the first token, where a tagger predicts the word's tag.
INSIDE_ID = BOS_ID
# The first word of a vocabulary of words, after the special ids, 256 bytes and the space.
FIRST_WORD = EOS_ID + 1 + 256 + 1
