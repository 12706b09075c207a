"""Sampling from a normal distribution, differentiable in its parameters."""

from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.precision import at_least_float32
from keras_seq.layers.internal.scaled_dot_product import zero_padding


@keras.saving.register_keras_serializable(package="keras_seq")
class ReparameterizedSampling(keras.layers.Layer):
    """Sample from a normal distribution by the reparameterization trick, with a KL loss.

        z  = mean + exp(log_variance / 2) * noise,   noise ~ N(0, 1)
        KL = 1/2 sum over u of (mean^2 + exp(log_variance) - 1 - log_variance)

    This is the latent layer of a variational autoencoder. The noise does not depend on the
    parameters, so gradients reach mean and variance. The layer adds the KL divergence from the
    standard normal distribution to the loss. It computes in float32 or more, because exp
    overflows early in float16. To anneal the variable `kl_weight`, which is not trained, call
    `layer.kl_weight.assign(...)` in a callback; nothing is retraced.

    Shapes: B batch, T steps, U units.

    Args:
        kl_weight: Float, the weight of KL in the loss (beta). With None the layer has no variable
            and adds no loss, for training loops that add KL themselves. Defaults to 1.
        free_bits: Float, the KL per unit in nats, averaged over the batch, that is not
            penalized. Defaults to 0.
        seed: Optional integer that makes the noise reproducible.

    Call arguments:
        mean: Float tensor `(B, U)` or `(B, T, U)`.
        log_variance: Tensor of the same shape.
        mean_mask: Optional bool tensor `(B, T)`, True at real steps; by default the mask of `mean`.
        training: Whether to sample; otherwise z is the mean.

    Returns:
        Tensor of the same shape, in the compute dtype.

    Masks: the mask of `mean` passes through. The content of masked steps, even NaN, affects
    neither the divergence nor the gradients.

    Raises:
        ValueError: If `kl_weight` or `free_bits` is negative, or the inputs differ in shape or are
            neither `(B, U)` nor `(B, T, U)`.

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
        Kingma and Welling, "Auto-Encoding Variational Bayes", 2014, section 2.4 and appendix B,
        https://arxiv.org/abs/1312.6114; free bits: Kingma et al., "Improving Variational Inference
        with Inverse Autoregressive Flow", 2016, appendix C.8, https://arxiv.org/abs/1606.04934
    """

    def __init__(
        self,
        kl_weight: float | None = 1.0,
        free_bits: float = 0.0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        for name, value in (("kl_weight", kl_weight), ("free_bits", free_bits)):
            if value is not None and not value >= 0:
                raise ValueError(f"`{name}` must not be negative, received {value!r}.")
        self.initial_kl_weight = kl_weight
        self.free_bits = free_bits
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def build(self, mean_shape: Any, log_variance_shape: Any) -> None:
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

    def call(
        self, mean: Any, log_variance: Any, mean_mask: Any = None, training: bool | None = None
    ) -> Any:
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
            noise = keras.random.normal(
                backend.shape(mean), dtype=mean.dtype, seed=self.seed_generator
            )
            mean = mean + ops.exp(log_variance / 2) * noise
        return ops.cast(mean, self.compute_dtype)

    def kl_divergence(self, mean: Any, log_variance: Any, mask: Any = None) -> Any:
        """Returns KL of each row `(B,)`, summed over units and real steps, in float32 or more."""
        mean = at_least_float32(zero_padding(mean, mask))
        log_variance = at_least_float32(zero_padding(log_variance, mask))
        return ops.sum(kl_of_units(mean, log_variance), axis=-1)

    def _loss(self, mean: Any, log_variance: Any) -> Any:
        # Mean and log variance are 0 on padding, so the KL of padding is 0.
        kl = ops.mean(kl_of_units(mean, log_variance), axis=0)  # (U,)
        penalized = ops.sum(ops.maximum(kl, self.free_bits))
        return ops.cast(self.kl_weight, penalized.dtype) * penalized

    def compute_mask(self, mean: Any, mask: Any = None) -> Any:
        return mask

    def get_config(self) -> dict[str, Any]:
        config = {"kl_weight": self.initial_kl_weight, "free_bits": self.free_bits}
        return {**super().get_config(), **config, "seed": self.seed}


def kl_of_units(mean: Any, log_variance: Any) -> Any:
    """Returns KL of each unit `(B, U)`, summed over steps, from `(B, U)` or `(B, T, U)` tensors."""
    # expm1 is precise for a variance close to 1.
    divergence = 0.5 * (ops.square(mean) + ops.expm1(log_variance) - log_variance)
    return ops.sum(divergence, axis=1) if len(divergence.shape) == 3 else divergence
