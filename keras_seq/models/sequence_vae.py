"""The variational autoencoder of sequences."""

from types import SimpleNamespace

import keras
from keras import ops

from keras_seq.layers.internal.dropout import Dropout
from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.layers.reparameterized_sampling import ReparameterizedSampling
from keras_seq.models.checks import check_sizes
from keras_seq.models.recurrent_decoder import RecurrentDecoder, initial_state
from keras_seq.models.recurrent_parts import bidirectional_layers, recurrent_reader

# Shape letters: B batch, S source steps, T target steps, Z latent units, K beam, V vocabulary.


@keras.saving.register_keras_serializable(package="keras_seq")
class SequenceVAE(keras.Model):
    """Variational autoencoder over token ids, as a functional Keras model.

        encoder:  h = last states of bidirectional layers over dropout(E[id])
                  mean = W h + b,  log_variance = W' h + b'
        latent:   z = mean + exp(log_variance / 2) * noise,  noise ~ N(0, 1)
        decoder:  recurrent layers over [dropout(E[id]); z], their first states
                  tanh(W_ij z + b_ij);  logits = W h + b, or E (P h) with a tied output

    A line of text goes through a vector of Z numbers and is written down again.
    What it is trained on is a bound on the likelihood of the text,

        log p(x) >= E[log p(x | z)] - KL(q(z | x) || N(0, 1)),

    of which the logits give the first term; `training.LatentTeaching` has the second.
    Encoder and decoder share the table E. Id 0 is padding.

    It has the contract of the encoder-decoder models, so that it is searched and
    exported as they are: source and target are the same text.

    Shapes: B batch, S source steps, T target steps, Z latent units, V vocabulary,
    K hypotheses.

    Args:
        vocabulary_size: Positive integer V.
        latent_units: Positive integer Z.
        cell: "gru" or "lstm".
        num_encoder_layers: Positive integer.
        num_decoder_layers: Positive integer.
        embedding_units: Positive integer.
        encoder_units: Positive integer, in each direction.
        decoder_units: Positive integer.
        dropout: Float in [0, 1), on embeddings, between layers and on the
            outputs of the last.
        tie_output: Whether the logits use the table of the embedding.
        seed: Optional integer, makes noise and dropout reproducible.

    Call arguments:
        inputs: Dict of int32 ids: `source` `(B, S)` and `target` `(B, T)`, the
            latter beginning with the start token.
        training: Whether z is drawn, and dropout applied; if not, z is the mean.

    Returns:
        Float32 logits `(B, T, V)`; step t scores the token that follows
        `target[:, t]`.

    Besides itself the model offers, over the same weights, `encoder`,
    `decoder_step`, `initial_state` and `grow_state`, as `RecurrentSeq2Seq`
    does, and

    * `posterior`: functional model, ids `(B, S)` -> `mean` and `log_variance` `(B, Z)`;
    * `decoder`: functional model of `latent` `(B, Z)` and `target` `(B, T)` -> logits;
    * `from_latent`: a model of the same contract whose source is z, `(B, Z)`;
    * `with_posterior`: itself, with `mean` and `log_variance` as further outputs.

    Masks: taken from the ids; padding changes nothing.

    Raises:
        ValueError: If `cell` is neither of these, or a size or rate is out of range.

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
        https://arxiv.org/abs/1511.06349; Kingma and Welling, "Auto-Encoding
        Variational Bayes", 2014, https://arxiv.org/abs/1312.6114
    """

    def __init__(
        self,
        vocabulary_size,
        *,
        latent_units=32,
        cell="gru",
        num_encoder_layers=1,
        num_decoder_layers=1,
        embedding_units=256,
        encoder_units=256,
        decoder_units=512,
        dropout=0.2,
        tie_output=True,
        seed=None,
        name="sequence_vae",
        **kwargs,
    ):
        check_sizes(
            latent_units=latent_units,
            num_encoder_layers=num_encoder_layers,
            encoder_units=encoder_units,
            decoder_units=decoder_units,
        )
        dtype = kwargs.pop("dtype", None)
        seeds = split_seed(seed, 2 + num_encoder_layers)
        layers = RecurrentDecoder(
            vocabulary_size,
            cell=cell,
            num_layers=num_decoder_layers,
            embedding_units=embedding_units,
            units=decoder_units,
            dropout=dropout,
            tie_output=tie_output,
            seed=seeds.pop(),
            dtype=dtype,
        )
        sampling = ReparameterizedSampling(
            kl_weight=None, seed=seeds.pop(), dtype=dtype, name="sampling"
        )
        dropouts = [
            Dropout(dropout, seed=seeds.pop(), dtype=dtype, name=f"encoder_dropout_{i}")
            for i in range(num_encoder_layers)
        ]
        encoder_layers = bidirectional_layers(cell, num_encoder_layers, encoder_units, dtype)
        read = recurrent_reader(encoder_layers, dropouts[1:])

        source = keras.Input((None,), dtype="int32", name="source")
        target = keras.Input((None,), dtype="int32", name="target")
        mask = ops.not_equal(source, 0)
        _, summary, _ = read(dropouts[0](layers.embedding(source)), mask)
        posterior = {
            part: ExactDense(latent_units, dtype=dtype, name=part)(summary)
            for part in ("mean", "log_variance")
        }
        z = sampling(posterior["mean"], posterior["log_variance"])

        latent = keras.Input((latent_units,), dtype=sampling.compute_dtype, name="latent")
        first = keras.Model(latent, layers.first_states(latent), name="first_states")
        decoder = keras.Model(
            {"latent": latent, "target": target},
            layers.logits(target, states=first(latent), vector=latent),
            name="decoder",
        )
        logits = decoder({"latent": z, "target": target})
        super().__init__(
            inputs={"source": source, "target": target}, outputs=logits, name=name, **kwargs
        )
        # A functional model takes no `dtype`, and would have the global policy whatever its layers.
        if dtype is not None:
            self.dtype_policy = dtype
        self._config = {
            "vocabulary_size": vocabulary_size,
            "latent_units": latent_units,
            "cell": cell,
            "num_encoder_layers": num_encoder_layers,
            "num_decoder_layers": num_decoder_layers,
            "embedding_units": embedding_units,
            "encoder_units": encoder_units,
            "decoder_units": decoder_units,
            "dropout": dropout,
            "tie_output": tie_output,
            "seed": seed,
        }
        memory = {"mask": mask, "vector": z, **first(z)}
        # In a namespace, which Keras does not track: the weights are this model's own.
        self._parts = SimpleNamespace(
            encoder=keras.Model(source, memory, name="encoder"),
            posterior=keras.Model(source, posterior, name="posterior"),
            with_posterior=keras.Model(self.input, {"logits": logits, **posterior}),
            decoder=decoder,
            decoder_step=layers.step(memory),
            first=first,
            sampling=sampling,
        )

    @property
    def encoder(self):
        """Functional model: ids `(B, S)` -> memory."""
        return self._parts.encoder

    @property
    def posterior(self):
        """Functional model: ids `(B, S)` -> dict of `mean` and `log_variance` `(B, Z)`."""
        return self._parts.posterior

    @property
    def decoder(self):
        """Functional model: dict of `latent` `(B, Z)` and `target` `(B, T)` -> logits."""
        return self._parts.decoder

    @property
    def decoder_step(self):
        """Functional model: one step of K hypotheses."""
        return self._parts.decoder_step

    @property
    def with_posterior(self):
        """This model with `mean` and `log_variance` `(B, Z)` besides `logits` `(B, T, V)`."""
        return self._parts.with_posterior

    @property
    def seed_generator(self):
        """That of the noise, which counts the batches that were drawn for."""
        return self._parts.sampling.seed_generator

    @property
    def attending_step(self):
        """None: the decoder looks at one vector, not at the steps of the source."""
        raise ValueError(
            "A variational autoencoder sees its source as one vector: it has no attention to "
            "show, to guide or to measure coverage by."
        )

    @property
    def from_latent(self):
        """What a search takes in place of this model to write the texts of codes `(B, Z)`."""
        return LatentDecoder(self)

    def initial_state(self, memory, beam_size, length):
        """The state before the first step; see `RecurrentSeq2Seq.initial_state`."""
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


class LatentDecoder:
    """The decoder of a `SequenceVAE` as a model of the search contract, its source z.

    Args:
        model: The `SequenceVAE`.
    """

    def __init__(self, model):
        self.variables = model.variables
        self.decoder_step = model.decoder_step
        self.initial_state = model.initial_state
        self.grow_state = model.grow_state
        self._first = model._parts.first
        self._latent = model.decoder.input["latent"]

    def encoder(self, latent, training=False):
        """The memory of texts with these codes, its mask of one step.

        Args:
            latent: Float tensor `(B, Z)`, from the prior, N(0, 1), or from between two texts.
            training: Unused.
        """
        # A compiled search may not know how wide it is.
        latent = ops.reshape(latent, (-1, self._latent.shape[1]))
        latent = ops.cast(latent, self._latent.dtype)
        mask = ops.ones_like(latent[:, :1], dtype="bool")
        return {"mask": mask, "vector": latent, **self._first(latent)}
