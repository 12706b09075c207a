"""Sampling from a normal distribution, with gradients to its parameters."""

import keras
from keras import ops

from keras_seq.layers.internal.precision import at_least_float32
from keras_seq.layers.internal.scaled_dot_product import zero_padding

# Shape letters: B batch, T steps, U units.


@keras.saving.register_keras_serializable(package="keras_seq")
class ReparameterizedSampling(keras.layers.Layer):
    """Draws from a normal distribution by shifting and scaling a standard one.

        z  = mean + exp(log_variance / 2) * noise,   noise ~ N(0, 1)
        KL = 1/2 sum over u of (mean^2 + exp(log_variance) - 1 - log_variance)

    The noise does not depend on the parameters, so gradients reach the mean
    and the variance: the latent layer of a variational autoencoder. The
    divergence KL of the distribution from the standard normal one is added to
    the loss. All of it is computed in float32 at least, where exp does not
    overflow as early as in float16.

    `kl_weight` is a variable that is not trained: a callback anneals it by
    `layer.kl_weight.assign(...)`, and no graph is made anew.

    Shapes: B batch, T steps, U units.

    Args:
        kl_weight: Float, what the loss multiplies KL by: beta. Defaults to 1.
            None: no loss is added and there is no variable; whoever trains adds
            the divergence, as `training.LatentTeaching` does.
        free_bits: Float, the nats of KL of one unit, averaged over the batch,
            that cost nothing. Defaults to 0.
        seed: Optional integer, makes the noise reproducible.

    Call arguments:
        mean: Float tensor `(B, U)` or `(B, T, U)`.
        log_variance: Tensor of the same shape.
        mean_mask: Optional bool tensor `(B, T)`, True where a step is real.
            Filled in by Keras from `mean` when not given.
        training: Whether to draw; if not, z is the mean.

    Returns:
        Tensor of the same shape, in the compute dtype.

    Masks: the mask of `mean` passes through. What a masked step holds, NaN
    included, reaches neither the divergence nor the gradients.

    Raises:
        ValueError: If `kl_weight` or `free_bits` is negative, or the inputs
            differ in shape or are neither `(B, U)` nor `(B, T, U)`.

    Example:

    >>> sampling = ReparameterizedSampling(kl_weight=0.5, seed=1)
    >>> mean, log_variance = keras.ops.ones((2, 3)), keras.ops.zeros((2, 3))
    >>> tuple(sampling(mean, log_variance, training=True).shape)
    (2, 3)
    >>> float(sampling.kl_divergence(mean, log_variance)[0])
    1.5
    >>> [float(loss) for loss in sampling.losses]
    [0.75]

    Reference:
        Kingma and Welling, "Auto-Encoding Variational Bayes", 2014, section
        2.4 and appendix B, https://arxiv.org/abs/1312.6114; free bits:
        Kingma et al., "Improving Variational Inference with Inverse
        Autoregressive Flow", 2016, appendix C.8,
        https://arxiv.org/abs/1606.04934
    """

    def __init__(self, kl_weight=1.0, free_bits=0.0, seed=None, **kwargs):
        super().__init__(**kwargs)
        for name, value in (("kl_weight", kl_weight), ("free_bits", free_bits)):
            if value is not None and not value >= 0:
                raise ValueError(f"`{name}` must not be negative, received {value!r}.")
        self.initial_kl_weight = kl_weight
        self.free_bits = free_bits
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.supports_masking = True

    def build(self, mean_shape, log_variance_shape):
        if len(mean_shape) not in (2, 3):
            raise ValueError(
                "`mean` must be of shape (batch, units) or (batch, steps, units), "
                f"received {tuple(mean_shape)}."
            )
        if tuple(mean_shape) != tuple(log_variance_shape):
            raise ValueError(
                "`mean` and `log_variance` must have the same shape, "
                f"received {tuple(mean_shape)} and {tuple(log_variance_shape)}."
            )
        if self.initial_kl_weight is None:
            return
        self.kl_weight = self.add_weight(
            name="kl_weight",
            shape=(),
            initializer=keras.initializers.Constant(self.initial_kl_weight),
            trainable=False,
            autocast=False,
        )

    def call(self, mean, log_variance, mean_mask=None, training=None):
        if mean_mask is not None and len(mean.shape) != 3:
            raise ValueError(
                "A mask is for inputs of shape (batch, steps, units), "
                f"received `mean` of shape {tuple(mean.shape)}."
            )
        mean = at_least_float32(zero_padding(mean, mean_mask))
        log_variance = at_least_float32(zero_padding(log_variance, mean_mask))
        if self.initial_kl_weight is not None:
            self.add_loss(self._loss(mean, log_variance))
        if training:
            noise = keras.random.normal(ops.shape(mean), dtype=mean.dtype, seed=self.seed_generator)
            mean = mean + ops.exp(log_variance / 2) * noise
        return ops.cast(mean, self.compute_dtype)

    def kl_divergence(self, mean, log_variance, mask=None):
        """KL of each row of the batch.

        Args:
            mean: Float tensor `(B, U)` or `(B, T, U)`.
            log_variance: Tensor of the same shape.
            mask: Optional bool tensor `(B, T)`.

        Returns:
            Tensor `(B,)`, float32 at least, the sum over units and real steps.
        """
        mean = at_least_float32(zero_padding(mean, mask))
        log_variance = at_least_float32(zero_padding(log_variance, mask))
        return ops.sum(kl_of_units(mean, log_variance), axis=-1)

    def _loss(self, mean, log_variance):
        # Padding was made 0, which is the standard distribution: its divergence is 0.
        of_units = ops.mean(kl_of_units(mean, log_variance), axis=0)  # (U,)
        free = ops.sum(ops.maximum(of_units, self.free_bits))
        return ops.cast(self.kl_weight, free.dtype) * free

    def compute_mask(self, mean, mask=None):
        return mask

    def get_config(self):
        return {
            **super().get_config(),
            "kl_weight": self.initial_kl_weight,
            "free_bits": self.free_bits,
            "seed": self.seed,
        }


def kl_of_units(mean, log_variance):
    """KL of each unit, summed over steps: `(B, U)` or `(B, T, U)` twice -> `(B, U)`."""
    # expm1 keeps the digits of a variance close to 1.
    divergence = 0.5 * (ops.square(mean) + ops.expm1(log_variance) - log_variance)
    return ops.sum(divergence, axis=1) if len(divergence.shape) == 3 else divergence
