"""Is the word being said? An answer at each frame, as the sound comes."""

from types import SimpleNamespace

import keras
from keras import ops

from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.internal.layer_normalization import LayerNormalization
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.models.cell_step import DropMask
from keras_seq.models.checks import check_sizes
from keras_seq.models.listener import sound_inputs
from keras_seq.models.method import Method
from keras_seq.models.output_mask import AttachMask

# Shape letters: B batch, N samples, S steps, D features, U units, W words, C convolved steps.


@keras.saving.register_keras_serializable(package="keras_seq")
class TriggerWordDetector(keras.Model):
    """Says at each frame of a sound whether a word has just ended, as a functional Keras model.

        x_s = log-mel features up to frame s, normalized over the frame
        c_s = relu(K [x_{s-C+1}; ...; x_s] + b)
        h_s = GRU(c_s, h_{s-1}), further layers on top
        logits_s = V h_s + d

    Nothing looks ahead: what comes later changes no answer, so that a stream
    gets from `stream_step`, piece by piece, what the whole would get at once.
    It is trained on labels that are 1 for some frames after the end of the
    word, with a binary cross-entropy of the logits; frames that are not real
    have a mask and do not count.

    Shapes: B batch, N samples, S frames, D features, W words.

    Args:
        features: `LogMelSpectrogram` with `causal=True`, or another layer with
            its methods; or a positive integer D, the number of features where
            the source has them already.
        num_words: Positive integer W, each with an answer of its own.
        kernel_size: Positive integer C, frames that the convolution sees.
        num_layers: Positive integer.
        units: Positive integer.
        dropout: Float in [0, 1), on what each recurrent layer reads and on the
            outputs of the last.
        seed: Optional integer, makes the dropout reproducible.

    Call arguments:
        inputs: Dict of `lengths` `(B,)` and float `samples` `(B, N)`, or
            `features` `(B, S, D)`.

    Returns:
        Float32 logits `(B, S, W)`.

    Besides itself the model offers, over the same weights:

    * `stream_step`: functional model of `samples`, whose number is a multiple of a
      frame's step, or `features`, and `state` -> `logits` and the next `state`;
    * `initial_state(batch_size)`.

    Masks: the outputs carry that of the frames, taken from the lengths.

    Raises:
        ValueError: If a size is not positive, or the layer of features is not
            causal.

    Example:

    >>> from keras_seq.layers import LogMelSpectrogram
    >>> front = LogMelSpectrogram(8000, num_mels=20, causal=True)
    >>> model = TriggerWordDetector(front, units=8)
    >>> state = model.initial_state(1)
    >>> heard = model.stream_step({"samples": keras.ops.zeros((1, 800)), "state": state})
    >>> tuple(heard["logits"].shape)
    (1, 10, 1)

    Reference:
        Fernandez, Graves and Schmidhuber, "An Application of Recurrent Neural
        Networks to Discriminative Keyword Spotting", ICANN 2007; with a
        convolution below: Arik et al., "Convolutional Recurrent Neural Networks
        for Small-Footprint Keyword Spotting", Interspeech 2017,
        https://arxiv.org/abs/1703.05390
    """

    def __init__(
        self,
        features,
        num_words=1,
        *,
        kernel_size=5,
        num_layers=1,
        units=64,
        dropout=0.2,
        seed=None,
        name="trigger_word_detector",
        **kwargs,
    ):
        dtype = kwargs.pop("dtype", None)
        check_sizes(
            num_words=num_words, kernel_size=kernel_size, num_layers=num_layers, units=units
        )
        if isinstance(features, keras.layers.Layer) and not getattr(features, "causal", False):
            raise ValueError(
                f"The layer of features {features.name!r} must not look ahead: make it with "
                "causal=True."
            )
        seeds = split_seed(seed, num_layers + 1)
        parts = SimpleNamespace(
            normalization=LayerNormalization(epsilon=1e-3, dtype=dtype, name="normalization"),
            convolution=keras.layers.Conv1D(
                units,
                kernel_size,
                padding="causal",
                activation="relu",
                dtype=dtype,
                name="convolution",
            ),
            layers=[
                keras.layers.GRU(
                    units, return_sequences=True, return_state=True, dtype=dtype, name=f"gru_{i}"
                )
                for i in range(num_layers)
            ],
            dropouts=[
                keras.layers.Dropout(dropout, seed=seed, dtype=dtype, name=f"dropout_{i}")
                for i, seed in enumerate(seeds)
            ],
            dense=ExactDense(num_words, dtype=dtype, name="logits"),
        )

        source, x, mask = sound_inputs(features)
        # What comes after the last real frame is seen by none before it: no mask is needed.
        x = parts.normalization(DropMask(dtype=dtype, name="unmasked")(x))
        logits, _ = _answers(parts, parts.convolution(x), [None] * num_layers)
        super().__init__(
            inputs=source,
            outputs=AttachMask(name="answers")(logits, mask=mask),
            name=name,
            **kwargs,
        )
        # A functional model takes no `dtype`, and would have the global policy whatever its layers.
        if dtype is not None:
            self.dtype_policy = dtype
        # In a namespace, which Keras does not track: the weights are this model's own.
        self._parts = SimpleNamespace(
            features=features,
            stream_step=_stream_step(parts, features, kernel_size - 1, x.shape[-1]),
            config={
                "num_words": num_words,
                "kernel_size": kernel_size,
                "num_layers": num_layers,
                "units": units,
                "dropout": dropout,
                "seed": seed,
            },
        )

    @property
    def stream_step(self):
        """Functional model: the next piece of a stream."""
        return self._parts.stream_step

    def initial_state(self, batch_size):
        """The state before the first piece: nothing was heard.

        Args:
            batch_size: Integer B.

        Returns:
            Dict of tensors `(B, ...)`.
        """
        return {
            name: ops.zeros((batch_size, *tensor.shape[1:]), dtype=tensor.dtype)
            for name, tensor in self.stream_step.input["state"].items()
        }

    def get_config(self):
        return {
            "features": keras.saving.serialize_keras_object(self._parts.features),
            **self._parts.config,
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        features = keras.saving.deserialize_keras_object(
            config["features"], custom_objects=custom_objects
        )
        return cls(**config | {"features": features})


def _answers(parts, x, states):
    """What the convolution gave `(B, S, U)` -> float32 logits `(B, S, W)`; the last states."""
    after = []
    for layer, dropout, state in zip(parts.layers, parts.dropouts, states, strict=False):
        x, state = layer(dropout(x), initial_state=state)
        after.append(state)
    return ops.cast(parts.dense(parts.dropouts[-1](x)), "float32"), after


def _stream_step(parts, features, before, size):
    """The functional model of a piece of a stream, over built layers.

    Args:
        parts: Namespace of the layers.
        features: The layer of features, or their number.
        before: Steps before its own that the convolution sees.
        size: D.
    """
    state, after = {}, {}
    if isinstance(features, int):
        pieces = {"features": keras.Input((None, features), name="features")}
        x = pieces["features"]
    else:
        heard = features.initial_state(1)
        state["heard"] = keras.Input(heard.shape[1:], dtype=heard.dtype, name="heard")
        pieces = {"samples": keras.Input((None,), name="samples")}
        x, after["heard"] = Method(
            features,
            "step",
            # Traced with numbers of samples that happen to be less than a frame it would have none.
            spec=lambda inputs: (
                keras.KerasTensor((None, None, size), dtype=features.compute_dtype),
                keras.KerasTensor(inputs["state"].shape, dtype=heard.dtype),
            ),
            name="step",
        )({**pieces, "state": state["heard"]})
    x = parts.normalization(x)
    if before:
        dtype = parts.convolution.compute_dtype
        state["before"] = keras.Input((before, size), dtype=dtype, name="before")
        x = ops.concatenate([state["before"], x], axis=1)
        after["before"] = x[:, -before:]
    names = [f"state_{i}" for i in range(len(parts.layers))]
    for name, layer in zip(names, parts.layers, strict=True):
        state[name] = keras.Input((layer.units,), dtype=layer.compute_dtype, name=name)
    # The first answers are those of the steps before, with silence in front of them.
    x = parts.convolution(x)[:, before:]
    logits, last = _answers(parts, x, [state[name] for name in names])
    after.update(zip(names, last, strict=True))
    return keras.Model(
        {**pieces, "state": state}, {"logits": logits, "state": after}, name="stream_step"
    )
