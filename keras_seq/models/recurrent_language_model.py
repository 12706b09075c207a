"""The recurrent language model."""

from typing import Any

import keras

from keras_seq.models.dummy_encoder import dummy_encoder
from keras_seq.models.inputs import token_input
from keras_seq.models.recurrent_decoder import RecurrentDecoder
from keras_seq.models.searchable_model import SearchableModel


@keras.saving.register_keras_serializable(package="keras_seq")
class RecurrentLanguageModel(SearchableModel):
    """Recurrent language model over token ids, as a functional Keras model.

        x = dropout(E[id]);  recurrent layers, residual from layer 2;  logits = W h + b,
        or E (P h) with a tied output

        P(y) = prod over t of P(y_t | y_<t)

    Generates text or scores it; the cost of a step does not grow with the length of the text. Id 0
    is padding, which changes nothing. The model has the inputs of an encoder-decoder model and
    ignores the source, so that the same code trains, searches and exports it. A prompt is the
    beginning of the target.

    Shapes: B batch, S source steps, T target steps, U units, V vocabulary.

    Args:
        vocabulary_size: Positive integer V.
        cell: "gru" or "lstm".
        num_layers, embedding_units: Positive integers.
        units: Positive integer U.
        dropout: Float in [0, 1), on embeddings, between layers and on the outputs of the last.
        tie_output: Whether the logits use the table of the embedding.
        seed: Optional integer, makes the dropout reproducible.
        **kwargs: `name`, and `dtype`, the policy of all layers.

    Call arguments:
        inputs: Dict of int32 ids: `target` `(B, T)`, which begins with the start token, and
            `source` `(B, S)`, which is ignored.

    Returns:
        Float32 logits `(B, T, V)`; step t scores the token after `target[:, t]`.

    For search the model offers `encoder`, `decoder_step`, `initial_state` and `grow_state`, and for
    long texts `with_states`.

    Raises:
        ValueError: If `cell` is unknown, or a size or rate is out of range.

    Example:

    >>> model = RecurrentLanguageModel(20, embedding_units=4, units=8)
    >>> ids = keras.ops.array([[2, 5, 6]])
    >>> tuple(model({"source": ids[:, :1], "target": ids}).shape)
    (1, 3, 20)

    Reference:
        Mikolov et al., "Recurrent Neural Network Based Language Model", 2010; Zaremba, Sutskever
        and Vinyals, "Recurrent Neural Network Regularization", 2014,
        https://arxiv.org/abs/1409.2329
    """

    def __init__(
        self,
        vocabulary_size: int,
        *,
        cell: str = "lstm",
        num_layers: int = 1,
        embedding_units: int = 256,
        units: int = 512,
        dropout: float = 0.2,
        tie_output: bool = True,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        decoder = RecurrentDecoder(self._arguments, num_layers, units, seed)
        source, target = token_input("source"), token_input("target")
        super().__init__(
            inputs={"source": source, "target": target}, outputs=decoder.logits(target), **kwargs
        )
        states = {
            name: keras.Input((units,), dtype=layer.compute_dtype, name=name)
            for layer, names in zip(decoder.layers, decoder.state_names, strict=True)
            for name in names
        }
        logits, last = decoder.logits_and_states(target, states)
        with_states = keras.Model(
            {"target": target, "state": states}, {"logits": logits, "state": last}
        )
        self._set_parts(dummy_encoder(source), decoder, with_states=with_states)

    @property
    def with_states(self) -> Any:
        """Functional model of a piece of a text that continues another piece.

        Its input is a dict of `target` `(B, T)` and `state`, tensors `(B, U)` by name; its output
        is a dict of `logits` `(B, T, V)` and the `state` after the piece. A piece without padding
        gives the logits that the model gives for the whole text.
        """
        return self._parts.with_states
