"""Keyword spotting in streams of audio."""

from types import SimpleNamespace
from typing import Any

import keras
from keras import ops

from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.internal.layer_normalization import LayerNormalization
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.models.call_method import CallMethod
from keras_seq.models.cell_step import DropMask
from keras_seq.models.checks import check_sizes
from keras_seq.models.functional_model import FunctionalModel
from keras_seq.models.output_mask import AttachMask
from keras_seq.models.speech_encoder import audio_inputs


@keras.saving.register_keras_serializable(package="keras_seq")
class TriggerWordDetector(FunctionalModel):
    """Detector of wake words at each frame of audio, as a functional Keras model.

        x_s = log-mel features up to frame s, normalized over the frame
        c_s = relu(K [x_{s-C+1}; ...; x_s] + b)
        h_s = GRU(c_s, h_{s-1}), further layers on top
        logits_s = V h_s + d

    The model is causal: later audio changes no earlier logits. A stream can therefore be processed
    piece by piece with `stream_step`, with the same results as the whole audio. Train it with a
    binary cross-entropy on labels that are 1 for some frames after the end of the word; padding
    frames are masked.

    Shapes: B batch, N samples, S frames, D features, U units, W words.

    Args:
        features: `LogMelSpectrogram` with `causal=True`, or another layer with its methods; or a
            positive integer D, the number of features, if the source consists of features.
        num_words: Positive integer W, the number of words, which are detected independently.
        kernel_size: Positive integer C, the frames in a convolution.
        num_layers, units: Positive integers.
        dropout: Float in [0, 1), on the inputs of each recurrent layer and on the outputs of the
            last.
        noise: Optional layer from the dict of samples to other samples in training, such as
            `RandomNoise`.
        seed: Optional integer, makes the dropout reproducible.
        **kwargs: `name`, and `dtype`, the policy of all layers.

    Call arguments:
        inputs: Dict of `lengths` `(B,)` and float `samples` `(B, N)`, or `features` `(B, S, D)`.

    Returns:
        Float32 logits `(B, S, W)`.

    For streams the model offers, over the same weights:

    * `stream_step`: functional model of `state` and of `samples`, a multiple of the frame step, or
      `features`, with the outputs `logits` and the next `state`;
    * `initial_state(batch_size)`.

    Masks: the outputs have the mask of the frames, taken from the lengths.

    Raises:
        ValueError: If a size is not positive, the layer of features is not causal, or there is
            noise for a source of features.

    Example:

    >>> from keras_seq.layers import LogMelSpectrogram
    >>> features = LogMelSpectrogram(8000, num_mels=20, causal=True)
    >>> model = TriggerWordDetector(features, units=8)
    >>> state = model.initial_state(1)
    >>> outputs = model.stream_step({"samples": keras.ops.zeros((1, 800)), "state": state})
    >>> tuple(outputs["logits"].shape)
    (1, 10, 1)

    Reference:
        Fernandez, Graves and Schmidhuber, "An Application of Recurrent Neural Networks to
        Discriminative Keyword Spotting", ICANN 2007; with a convolution below: Arik et al.,
        "Convolutional Recurrent Neural Networks for Small-Footprint Keyword Spotting",
        Interspeech 2017, https://arxiv.org/abs/1703.05390
    """

    def __init__(
        self,
        features: Any,
        num_words: int = 1,
        *,
        kernel_size: int = 5,
        num_layers: int = 1,
        units: int = 64,
        dropout: float = 0.2,
        noise: Any = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_sizes(
            num_words=num_words, kernel_size=kernel_size, num_layers=num_layers, units=units
        )
        if isinstance(features, keras.layers.Layer) and not getattr(features, "causal", False):
            raise ValueError(
                f"The layer of features {features.name!r} must not look ahead: make it with "
                "causal=True."
            )
        layers = _make_layers(self._arguments)
        source, x, mask = audio_inputs(features, noise)
        # The model is causal: real frames are not influenced by padding, even without a mask.
        x = layers.normalization(DropMask(dtype=self._arguments.dtype, name="unmasked")(x))
        logits, _ = _to_logits(layers, layers.convolution(x), [None] * num_layers)
        super().__init__(
            inputs=source, outputs=AttachMask(name="answers")(logits, mask=mask), **kwargs
        )
        # The namespace keeps Keras from tracking the weights twice.
        self._parts = SimpleNamespace(
            stream_step=_make_stream_step(layers, features, kernel_size - 1, x.shape[-1])
        )

    @property
    def stream_step(self) -> Any:
        """Functional model of the next piece of a stream."""
        return self._parts.stream_step

    def initial_state(self, batch_size: int) -> dict[str, Any]:
        """Returns the state before the first piece of a stream, after silence.

        `batch_size` is an integer B. The state is a dict of tensors `(B, ...)`.
        """
        return {
            name: ops.zeros((batch_size, *tensor.shape[1:]), dtype=tensor.dtype)
            for name, tensor in self.stream_step.input["state"].items()
        }


def _make_layers(arguments: SimpleNamespace) -> SimpleNamespace:
    args, dtype = arguments, arguments.dtype
    return SimpleNamespace(
        normalization=LayerNormalization(epsilon=1e-3, dtype=dtype, name="normalization"),
        convolution=keras.layers.Conv1D(
            args.units,
            args.kernel_size,
            padding="causal",
            activation="relu",
            dtype=dtype,
            name="convolution",
        ),
        recurrent=[
            keras.layers.GRU(
                args.units, return_sequences=True, return_state=True, dtype=dtype, name=f"gru_{i}"
            )
            for i in range(args.num_layers)
        ],
        dropouts=[
            keras.layers.Dropout(args.dropout, seed=seed, dtype=dtype, name=f"dropout_{i}")
            for i, seed in enumerate(split_seed(args.seed, args.num_layers + 1))
        ],
        dense=ExactDense(args.num_words, dtype=dtype, name="logits"),
    )


def _to_logits(layers: SimpleNamespace, x: Any, states: list[Any]) -> tuple[Any, list[Any]]:
    """Maps convolution outputs `(B, S, U)` to float32 logits `(B, S, W)` and the last states."""
    last_states = []
    for layer, dropout, state in zip(layers.recurrent, layers.dropouts, states, strict=False):
        x, state = layer(dropout(x), initial_state=state)
        last_states.append(state)
    return ops.cast(layers.dense(layers.dropouts[-1](x)), "float32"), last_states


def _make_stream_step(
    layers: SimpleNamespace, features: Any, num_before: int, num_features: int
) -> Any:
    """Makes the functional model that processes a piece of a stream with built layers.

    `features` is the layer of features, or their number. `num_before` is the number of frames
    before the current one in the convolution.
    """
    state, new_state = {}, {}
    if isinstance(features, int):
        piece = {"features": keras.Input((None, features), name="features")}
        x = piece["features"]
    else:
        feature_state = features.initial_state(1)
        state["features"] = keras.Input(
            feature_state.shape[1:], dtype=feature_state.dtype, name="feature_state"
        )
        piece = {"samples": keras.Input((None,), name="samples")}
        x, new_state["features"] = CallMethod(
            features,
            "step",
            # Keras traces methods with small sizes, which could be less than one frame.
            spec=lambda inputs: (
                keras.KerasTensor((None, None, num_features), dtype=features.compute_dtype),
                keras.KerasTensor(inputs["state"].shape, dtype=feature_state.dtype),
            ),
            name="step",
        )({**piece, "state": state["features"]})
    x = layers.normalization(x)
    if num_before:
        dtype = layers.convolution.compute_dtype
        state["frames"] = keras.Input((num_before, num_features), dtype=dtype, name="frames")
        x = ops.concatenate([state["frames"], x], axis=1)
        new_state["frames"] = x[:, -num_before:]
    names = [f"state_{i}" for i in range(len(layers.recurrent))]
    for name, layer in zip(names, layers.recurrent, strict=True):
        state[name] = keras.Input((layer.units,), dtype=layer.compute_dtype, name=name)
    # Drops the outputs of the frames before this piece.
    x = layers.convolution(x)[:, num_before:]
    logits, last_states = _to_logits(layers, x, [state[name] for name in names])
    new_state.update(zip(names, last_states, strict=True))
    return keras.Model(
        {**piece, "state": state}, {"logits": logits, "state": new_state}, name="stream_step"
    )
