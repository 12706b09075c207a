"""The variational autoencoder of sequences."""

from typing import Any

import keras
from keras import ops

from keras_seq.layers.internal.dropout import Dropout
from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.layers.reparameterized_sampling import ReparameterizedSampling
from keras_seq.models.checks import check_sizes
from keras_seq.models.inputs import token_input
from keras_seq.models.recurrent_decoder import RecurrentDecoder
from keras_seq.models.recurrent_encoder import encode_bidirectional, make_bidirectional_layers
from keras_seq.models.searchable_model import SearchableModel


@keras.saving.register_keras_serializable(package="keras_seq")
class SequenceVAE(SearchableModel):
    """Variational autoencoder over token ids, as a functional Keras model.

        encoder:  h = last states of bidirectional layers over dropout(E[id])
                  mean = W h + b,  log_variance = W' h + b'
        latent:   z = mean + exp(log_variance / 2) * noise,  noise ~ N(0, 1)
        decoder:  recurrent layers over [dropout(E[id]); z], with the first states
                  tanh(W_ij z + b_ij);  logits = W h + b, or E (P h) with a tied output

    Encodes a text as a latent code of Z numbers and decodes it again; samples of the prior become
    new texts. Training maximizes a bound on the likelihood of the text,

        log p(x) >= E[log p(x | z)] - KL(q(z | x) || N(0, 1)).

    The logits give the first term; `training.VAETrainingModel` adds the second. Encoder and decoder
    share the table E. Id 0 is padding, which changes nothing. Source and target are the same text,
    so that the same code trains, searches and exports this model and encoder-decoder models.

    Shapes: B batch, S source steps, T target steps, Z latent units, V vocabulary.

    Args:
        vocabulary_size: Positive integer V.
        latent_units: Positive integer Z.
        cell: "gru" or "lstm".
        num_encoder_layers, num_decoder_layers, embedding_units: Positive integers.
        encoder_units, decoder_units: Positive integers; of the encoder, in each direction.
        dropout: Float in [0, 1), on embeddings, between layers and on the outputs of the last.
        tie_output: Whether the logits use the table of the embedding.
        seed: Optional integer, makes noise and dropout reproducible.
        **kwargs: `name`, and `dtype`, the policy of all layers.

    Call arguments:
        inputs: Dict of int32 ids: `source` `(B, S)` and `target` `(B, T)`. The target begins with
            the start token.
        training: Whether to sample z and to apply dropout. Otherwise z is the mean.

    Returns:
        Float32 logits `(B, T, V)`; step t scores the token after `target[:, t]`.

    For search the model offers `encoder`, `decoder_step`, `initial_state` and `grow_state`, and

    * `posterior`: functional model from ids `(B, S)` to `mean` and `log_variance` `(B, Z)`;
    * `decoder`: functional model from `latent` `(B, Z)` and `target` `(B, T)` to logits;
    * `from_latent`: a model to search with whose source is z `(B, Z)`;
    * `with_posterior`: this model with `mean` and `log_variance` as further outputs.

    Raises:
        ValueError: If `cell` is unknown, or a size or rate is out of range.

    Example:

    >>> model = SequenceVAE(20, latent_units=3, embedding_units=4, encoder_units=4,
    ...     decoder_units=8)
    >>> ids = keras.ops.array([[5, 6, 3]])
    >>> tuple(model({"source": ids, "target": ids}).shape)
    (1, 3, 20)
    >>> tuple(model.posterior(ids)["mean"].shape)
    (1, 3)

    Reference:
        Bowman et al., "Generating Sentences from a Continuous Space", 2016, section 3,
        https://arxiv.org/abs/1511.06349; Kingma and Welling, "Auto-Encoding Variational Bayes",
        2014, https://arxiv.org/abs/1312.6114
    """

    def __init__(
        self,
        vocabulary_size: int,
        *,
        latent_units: int = 32,
        cell: str = "gru",
        num_encoder_layers: int = 1,
        num_decoder_layers: int = 1,
        embedding_units: int = 256,
        encoder_units: int = 256,
        decoder_units: int = 512,
        dropout: float = 0.2,
        tie_output: bool = True,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_sizes(
            latent_units=latent_units,
            num_encoder_layers=num_encoder_layers,
            encoder_units=encoder_units,
            decoder_units=decoder_units,
        )
        seeds = split_seed(seed, 2 + num_encoder_layers)
        args = self._arguments
        layers = RecurrentDecoder(args, num_decoder_layers, decoder_units, seed=seeds.pop())
        sampling = ReparameterizedSampling(
            kl_weight=None, seed=seeds.pop(), dtype=args.dtype, name="sampling"
        )
        encode = self._make_encoder(layers.embedding, seeds)

        source, target = token_input("source"), token_input("target")
        posterior = encode(source)
        z = sampling(posterior["mean"], posterior["log_variance"])
        latent = keras.Input((latent_units,), dtype=sampling.compute_dtype, name="latent")
        first_states = keras.Model(latent, layers.first_states(latent), name="first_states")
        decoder = keras.Model(
            {"latent": latent, "target": target},
            layers.logits(target, states=first_states(latent), vector=latent),
            name="decoder",
        )
        logits = decoder({"latent": z, "target": target})
        super().__init__(inputs={"source": source, "target": target}, outputs=logits, **kwargs)
        memory = {"mask": ops.not_equal(source, 0), "vector": z, **first_states(z)}
        self._set_parts(
            keras.Model(source, memory, name="encoder"),
            layers,
            posterior=keras.Model(source, posterior, name="posterior"),
            with_posterior=keras.Model(self.input, {"logits": logits, **posterior}),
            decoder_model=decoder,
            first_states=first_states,
            sampling=sampling,
        )

    def _make_encoder(self, embedding: Any, seeds: list[int | None]) -> Any:
        """Makes a function from symbolic ids to `mean` and `log_variance`."""
        args = self._arguments
        dropouts = [
            Dropout(args.dropout, seed=seeds.pop(), dtype=args.dtype, name=f"encoder_dropout_{i}")
            for i in range(args.num_encoder_layers)
        ]
        layers = make_bidirectional_layers(
            args.cell, args.num_encoder_layers, args.encoder_units, args.dtype
        )

        def encode(source: Any) -> dict[str, Any]:
            x, mask = dropouts[0](embedding(source)), ops.not_equal(source, 0)
            _, last_states = encode_bidirectional(layers, dropouts[1:], x, mask)
            summary = last_states[-1][0]
            return {
                name: ExactDense(args.latent_units, dtype=args.dtype, name=name)(summary)
                for name in ("mean", "log_variance")
            }

        return encode

    @property
    def posterior(self) -> Any:
        """Functional model from ids `(B, S)` to a dict of `mean` and `log_variance` `(B, Z)`."""
        return self._parts.posterior

    @property
    def decoder(self) -> Any:
        """Functional model from a dict of `latent` `(B, Z)` and `target` `(B, T)` to logits."""
        return self._parts.decoder_model

    @property
    def with_posterior(self) -> Any:
        """This model with the outputs `logits` `(B, T, V)`, `mean` and `log_variance` `(B, Z)`."""
        return self._parts.with_posterior

    @property
    def seed_generator(self) -> Any:
        """Seed generator of the noise. Its state counts the sampled batches."""
        return self._parts.sampling.seed_generator

    @property
    def from_latent(self) -> "LatentDecoder":
        """Searchable model whose source is a latent code `(B, Z)`."""
        return LatentDecoder(self)


class LatentDecoder:
    """Searchable model that runs the decoder of a `SequenceVAE` from a latent code z."""

    def __init__(self, model: SequenceVAE) -> None:
        self.variables = model.variables
        self.decoder_step = model.decoder_step
        self.initial_state = model.initial_state
        self.grow_state = model.grow_state
        self._first_states = model._parts.first_states
        self._latent = model.decoder.input["latent"]

    def encoder(self, latent: Any, training: bool = False) -> dict[str, Any]:
        """Returns the memory of latent codes `(B, Z)`, with a mask of one step.

        The codes are samples of the prior, N(0, 1), or points between the codes of two texts.
        """
        # The size Z may be unknown in a compiled search.
        latent = ops.reshape(latent, (-1, self._latent.shape[1]))
        latent = ops.cast(latent, self._latent.dtype)
        mask = ops.ones_like(latent[:, :1], dtype="bool")
        return {"mask": mask, "vector": latent, **self._first_states(latent)}
