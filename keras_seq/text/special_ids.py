"""Token ids with a fixed meaning, the same in every vocabulary of this package."""

PAD_ID = 0
UNK_ID = 1
BOS_ID = 2
EOS_ID = 3
# The tag of every token of a word but the first. A tagger predicts one tag per word, at its first
# token.
INSIDE_ID = BOS_ID
