"""Old names of the special ids."""

from keras_seq.text import BOS_ID as BOS
from keras_seq.text import EOS_ID as EOS
from keras_seq.text import INSIDE_ID as INSIDE
from keras_seq.text import PAD_ID as PAD
from keras_seq.text import UNK_ID as UNK

__all__ = ["BOS", "EOS", "INSIDE", "PAD", "UNK"]
