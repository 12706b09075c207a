"""The recurrent language model."""

from types import SimpleNamespace

import keras

from keras_seq.models.recurrent_decoder import RecurrentDecoder, initial_state
from keras_seq.models.target_only import dummy_encoder, no_attention

# Shape letters: B batch, S source steps, T target steps, U units, K beam, V vocabulary.


@keras.saving.register_keras_serializable(package="keras_seq")
class RecurrentLanguageModel(keras.Model):
    """Recurrent language model over token ids, as a functional Keras model.

        x = dropout(E[id]);  recurrent layers, residual from layer 2;  logits = W h + b,
        or E (P h) with a tied output

        P(y) = prod over t of P(y_t | y_<t)

    Id 0 is padding. It has the contract of the encoder-decoder models with a source
    of which nothing is read, so that it is trained, searched and exported as
    they are: a prompt is what the target begins with.

    Shapes: B batch, S source steps, T target steps, U units, V vocabulary, K
    hypotheses.

    Args:
        vocabulary_size: Positive integer V.
        cell: "gru" or "lstm".
        num_layers: Positive integer.
        embedding_units: Positive integer.
        units: Positive integer U.
        dropout: Float in [0, 1), on embeddings, between layers and on the
            outputs of the last.
        tie_output: Whether the logits use the table of the embedding.
        seed: Optional integer, makes the dropout reproducible.

    Call arguments:
        inputs: Dict of int32 ids: `target` `(B, T)`, beginning with the start
            token; `source` `(B, S)`, whatever it holds.

    Returns:
        Float32 logits `(B, T, V)`; step t scores the token that follows
        `target[:, t]`.

    Besides itself the model offers, over the same weights, `encoder`,
    `decoder_step`, `initial_state` and `grow_state`, as `RecurrentSeq2Seq` does.

    Masks: padding follows what is real and cannot change it.

    Raises:
        ValueError: If `cell` is neither of these, or a size or rate is out of range.

    Example:

    >>> model = RecurrentLanguageModel(20, embedding_units=4, units=8)
    >>> ids = keras.ops.array([[2, 5, 6]])
    >>> tuple(model({"source": ids[:, :1], "target": ids}).shape)
    (1, 3, 20)

    Reference:
        Mikolov et al., "Recurrent Neural Network Based Language Model", 2010;
        Zaremba, Sutskever and Vinyals, "Recurrent Neural Network
        Regularization", 2014, https://arxiv.org/abs/1409.2329
    """

    def __init__(
        self,
        vocabulary_size,
        *,
        cell="lstm",
        num_layers=1,
        embedding_units=256,
        units=512,
        dropout=0.2,
        tie_output=True,
        seed=None,
        name="recurrent_language_model",
        **kwargs,
    ):
        dtype = kwargs.pop("dtype", None)
        decoder = RecurrentDecoder(
            vocabulary_size,
            cell=cell,
            num_layers=num_layers,
            embedding_units=embedding_units,
            units=units,
            dropout=dropout,
            tie_output=tie_output,
            seed=seed,
            dtype=dtype,
        )
        source = keras.Input((None,), dtype="int32", name="source")
        target = keras.Input((None,), dtype="int32", name="target")
        super().__init__(
            inputs={"source": source, "target": target},
            outputs=decoder.logits(target),
            name=name,
            **kwargs,
        )
        # A functional model takes no `dtype`, and would have the global policy whatever its layers.
        if dtype is not None:
            self.dtype_policy = dtype
        self._config = {
            "vocabulary_size": vocabulary_size,
            "cell": cell,
            "num_layers": num_layers,
            "embedding_units": embedding_units,
            "units": units,
            "dropout": dropout,
            "tie_output": tie_output,
            "seed": seed,
        }
        encoder = dummy_encoder(source)
        self._parts = SimpleNamespace(encoder=encoder, decoder_step=decoder.step(encoder.output))

    @property
    def encoder(self):
        """Functional model: ids `(B, S)` -> memory, which only says how many rows there are."""
        return self._parts.encoder

    @property
    def decoder_step(self):
        """Functional model: one step of K hypotheses."""
        return self._parts.decoder_step

    @property
    def attending_step(self):
        """None of a language model: there is no source to look at."""
        return no_attention()

    def initial_state(self, memory, beam_size, length):
        """The state before the first step, zeros; see `RecurrentSeq2Seq.initial_state`."""
        return initial_state(self.decoder_step, memory, beam_size)

    def grow_state(self, state, length):
        """The state itself, which has room for any number of steps."""
        return state

    def get_config(self):
        return {
            **self._config,
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**config)
