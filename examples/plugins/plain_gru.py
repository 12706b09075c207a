"""A model family of your own: a GRU reads the source, a second GRU writes the target.

keras-seq train runs/dates --pairs dates.tsv --import plain_gru.py --set model.family=plain-gru
keras-seq translate runs/dates --import plain_gru.py < input.txt
keras-seq export runs/dates served/dates --import plain_gru.py
"""

from typing import Literal

import keras

from keras_seq import register_family
from keras_seq.settings import ModelSection, a_family, a_number


class PlainGRU(keras.Model):
    """Has what beam search needs: encoder, initial_state, decoder_step and grow_state."""

    def __init__(self, source_size, target_size, units, dtype=None, name=None, **_):
        source = keras.Input((None,), dtype="int32", name="source")
        target = keras.Input((None,), dtype="int32", name="target")
        vectors = keras.layers.Embedding(source_size, units, mask_zero=True)(source)
        mask = keras.ops.not_equal(source, 0)
        summary = keras.layers.GRU(units)(vectors, mask=mask)
        embed = keras.layers.Embedding(target_size, units)
        decoder = keras.layers.GRU(units, return_sequences=True)
        score = keras.layers.Dense(target_size, dtype="float32")
        logits = score(decoder(embed(target), initial_state=summary))
        super().__init__({"source": source, "target": target}, logits, name=name)
        self.encoder = keras.Model(source, {"summary": summary, "mask": mask})
        self.parts = [embed, decoder.cell, score]

    def initial_state(self, memory, beam_size, length):
        """The state of each of K hypotheses, `(B, K, U)`; in an export, K is a tensor."""
        return {"beam": {"h": keras.ops.repeat(memory["summary"][:, None], beam_size, 1)}}

    def decoder_step(self, inputs, training=None):
        """Logits `(B, K, V)` of the token after `inputs["token"]` `(B, K)`, and the next state."""
        embed, cell, score = self.parts
        before = inputs["state"]["beam"]["h"]
        units, beam_size = before.shape[-1], keras.ops.shape(inputs["token"])[1]
        flat = (keras.ops.reshape(x, (-1, units)) for x in (embed(inputs["token"]), before))
        hidden, _ = cell(*flat)
        hidden = keras.ops.reshape(hidden, (-1, beam_size, units))
        return {"logits": score(hidden), "state": {"beam": {"h": hidden}}}

    def grow_state(self, state, length):
        """The size of a recurrent state does not depend on the length."""
        return state


@register_family("translate", training={"learning_rate": 0.003, "warmup_steps": 100})
class PlainGRUSettings(ModelSection):
    """The settings of the section `model`."""

    model_class = PlainGRU
    family: Literal["plain-gru"] = a_family("plain-gru")
    units: int = a_number(128, 1, 4096, "Width of the model.")
