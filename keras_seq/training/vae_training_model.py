"""Training wrapper of a variational autoencoder, with the KL divergence as a second output."""

import keras
from keras import ops

from keras_seq.layers.internal.precision import at_least_float32
from keras_seq.layers.reparameterized_sampling import kl_of_units

# Shape letters: B batch, T target steps, Z latent units.


class VAETrainingModel(keras.Model):
    """A `models.SequenceVAE` with the weighted KL divergence from the prior as a second output.

        divergence[b] = beta(i) * sum over z of max(free_bits, KL_bz)
        KL_bz = 1/2 (mean_bz^2 + exp(log_variance_bz) - 1 - log_variance_bz)

    where i is the number of updates so far. Compile and fit this model instead of `model`, with
    `SequenceCrossEntropy` and `DivergenceLoss`. The two share their weights; save, evaluate and
    decode with `model`.

    Free bits apply to each row. If they applied to the mean over rows, the loss would depend on how
    rows are grouped into batches and devices.

    Args:
        model: A `models.SequenceVAE`.
        weight: beta, a float or a function of the number of updates so far, such as
            `rates.cyclical_annealing` returns. The number of updates is read from the seed
            generator of the noise, so that the schedule resumes when the generator is restored.
        free_bits: Float, nats per unit that are free of cost.
        micro_batches: Positive integer, batches per update.

    Call arguments:
        inputs: Dict of int32 ids, `source` `(B, S)` and `target` `(B, T)`.
        training: Whether to sample z and count the updates.

    Returns:
        Dict of `logits` `(B, T, V)` and `divergence` `(B,)`, float32.

    Raises:
        ValueError: If `free_bits` or a number as `weight` is negative.

    Example:

    >>> from keras_seq.models import SequenceVAE
    >>> from keras_seq.schedules.rates import linear_annealing
    >>> model = SequenceVAE(20, latent_units=3, embedding_units=4, encoder_units=4,
    ...     decoder_units=8)
    >>> train_model = VAETrainingModel(model, linear_annealing(1000))
    >>> ids = {"source": ops.ones((2, 3), "int32"), "target": ops.ones((2, 4), "int32")}
    >>> [float(divergence) for divergence in train_model(ids, training=True)["divergence"]]
    [0.0, 0.0]

    Reference:
        Bowman et al., "Generating Sentences from a Continuous Space", 2016, section 3.1,
        https://arxiv.org/abs/1511.06349; free bits: Kingma et al., "Improving Variational
        Inference with Inverse Autoregressive Flow", 2016, appendix C.8,
        https://arxiv.org/abs/1606.04934; beta: Higgins et al., "beta-VAE", 2017
    """

    def __init__(self, model, weight=1.0, free_bits=0.0, micro_batches=1):
        super().__init__(name="training_wrapper")
        for name, value in (("weight", weight), ("free_bits", free_bits)):
            if not callable(value) and not value >= 0:
                raise ValueError(f"`{name}` must not be negative, received {value!r}.")
        self.plain = model
        self.with_posterior = model.with_posterior
        self.weight = weight
        self.free_bits = free_bits
        self.micro_batches = micro_batches
        self.built = True

    def call(self, inputs, training=None):
        # Computed before the forward pass, which advances the counter of the seed generator.
        weight = self._weight()
        outputs = self.with_posterior(inputs, training=training)
        mean, log_variance = (at_least_float32(outputs[key]) for key in ("mean", "log_variance"))
        divergence = kl_of_units(mean, log_variance)
        divergence = ops.sum(ops.maximum(divergence, self.free_bits), axis=-1)  # (B,)
        return {"logits": outputs["logits"], "divergence": ops.cast(weight * divergence, "float32")}

    def _weight(self):
        if not callable(self.weight):
            return self.weight
        batches = ops.cast(self.plain.seed_generator.state.value[1], "int32")
        return self.weight(batches // self.micro_batches)


@keras.saving.register_keras_serializable(package="keras_seq")
class DivergenceLoss(keras.losses.Loss):
    """The weighted sum of the KL divergences of the rows of a batch.

        loss = sum over b of  w_b * divergence[b]

    Rows that consist only of padding do not count.

    Shapes: B batch, T target steps.

    Call arguments:
        y_true: Integer ids `(B, T)`, the targets; id 0 is padding.
        y_pred: Float tensor `(B,)`, the `divergence` of `VAETrainingModel`.
        sample_weight: Optional float tensor w `(B,)`.

    Returns:
        Float32 scalar.

    Example:

    >>> loss = DivergenceLoss()
    >>> float(loss(keras.ops.array([[5, 3], [0, 0]]), keras.ops.array([2.0, 7.0])))
    2.0
    """

    def __init__(self, name="divergence", **kwargs):
        super().__init__(name=name, **kwargs)

    def __call__(self, y_true, y_pred, sample_weight=None):
        losses = self.call(y_true, y_pred)
        if sample_weight is not None:
            losses = losses * ops.cast(sample_weight, "float32")
        return ops.sum(losses)

    def call(self, y_true, y_pred):
        """Divergence of each row, `(B,)`; 0 for rows of padding."""
        real = ops.any(ops.not_equal(ops.convert_to_tensor(y_true), 0), axis=1)
        return ops.where(real, ops.cast(y_pred, "float32"), 0.0)
