"""Speech to labels by connectionist temporal classification."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_seq.layers.internal.layer_normalization import LayerNormalization
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.layers.speech.ctc_logits import CTCLogits
from keras_seq.layers.speech.strided_convolution import StridedConvolution
from keras_seq.models.checks import check_choice, check_sizes
from keras_seq.models.functional_model import FunctionalModel
from keras_seq.models.recurrent_encoder import RECURRENT_LAYERS, make_bidirectional
from keras_seq.models.speech_encoder import audio_inputs


@keras.saving.register_keras_serializable(package="keras_seq")
class CTCRecognizer(FunctionalModel):
    """Speech recognizer that labels each frame (CTC), as a functional Keras model.

        features: x_s, log-mel or given, normalized over the features of each step, augmented
        x         = strided convolutions, which leave fewer frames
        h^i       = BiRNN(dropout(h^{i-1})), residual from layer 2
        logits    = W h^L + b;  the blank, which is label 0, at padding frames

        P(y | x)  = sum over the alignments a to y of prod over t of P(a_t | x)

    For transcripts in the order of the audio, with training data that has no time stamps. Train it
    with `losses.CTCLoss`; `search.ctc_greedy_search` and `search.ctc_beam_search` decode its
    logits.

    Shapes: B batch, N samples, S steps of features, F frames, D features, V labels.

    Args:
        vocabulary_size: Integer V, at least 2: the labels, and the blank, which is 0.
        features: Layer that computes features and their mask from a dict of `samples` and
            `lengths`, such as `LogMelSpectrogram`; or a positive integer D, the number of
            features, if the inputs consist of features.
        strides: Positive integers, one for each convolution. F is S + 1, for one step of padding,
            divided by each of them, rounded up each time. A label needs one frame, and two equal
            labels in a row need three; see `losses.ctc_needed_frames`.
        convolution_units: Positive integer, the features of a convolution.
        cell: "gru" or "lstm".
        num_layers: Positive integer L.
        units: Positive integer, in each direction.
        dropout: Float in [0, 1), on the inputs of each recurrent layer and of the last layer.
        augmentation: Optional layer such as `SpecAugment`, which changes the normalized features
            in training.
        speed: Optional layer such as `RandomSpeed`, which changes the samples and their number in
            training.
        seed: Optional integer, makes the dropout reproducible.
        **kwargs: `name`, and `dtype`, the policy of all layers.

    Call arguments:
        inputs: Dict of `lengths` `(B,)`, the number of real samples or steps, and of float
            `samples` `(B, N)` or `features` `(B, S, D)`.

    Returns:
        Float32 logits `(B, F, V)`.

    Masks: taken from the lengths. Padding changes nothing, whatever samples or features it
    contains; padding frames are labeled as blank.

    Raises:
        ValueError: If `cell` is unknown, or a size or rate is out of range.

    Example:

    >>> from keras_seq.layers import LogMelSpectrogram
    >>> model = CTCRecognizer(11, LogMelSpectrogram(8000, num_mels=20), units=8,
    ...     convolution_units=8, num_layers=1)
    >>> audio = {"samples": keras.ops.zeros((1, 4000)), "lengths": keras.ops.array([3000])}
    >>> tuple(model(audio).shape)
    (1, 25, 11)

    Reference:
        Graves, Fernández, Gomez and Schmidhuber, "Connectionist Temporal Classification", ICML
        2006; with convolutions: Amodei et al., "Deep Speech 2", ICML 2016, section 3,
        https://arxiv.org/abs/1512.02595
    """

    def __init__(
        self,
        vocabulary_size: int,
        features: Any,
        *,
        strides: Sequence[int] = (2,),
        convolution_units: int = 128,
        cell: str = "gru",
        num_layers: int = 2,
        units: int = 128,
        dropout: float = 0.1,
        augmentation: Any = None,
        speed: Any = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_choice("cell", cell, tuple(RECURRENT_LAYERS))
        check_sizes(num_layers=num_layers, units=units, convolution_units=convolution_units)
        dtype = self._arguments.dtype
        seeds = split_seed(seed, num_layers + 1)

        def drop(x: Any, name: str) -> Any:
            return keras.layers.Dropout(dropout, seed=seeds.pop(), dtype=dtype, name=name)(x)

        inputs, x, mask = audio_inputs(features, speed=speed)
        # One step of padding, because recurrent layers fail on empty sequences.
        x = ops.pad(x, [[0, 0], [0, 1], [0, 0]])
        mask = ops.pad(mask, [[0, 0], [0, 1]])
        # The large epsilon is for silence, where all features are equal.
        x = LayerNormalization(epsilon=1e-3, dtype=dtype, name="normalization")(x)
        if augmentation is not None:
            x = augmentation(x, mask=mask)
        for i, stride in enumerate(strides):
            convolution = StridedConvolution(
                convolution_units, stride, 2 * stride + 1, dtype=dtype, name=f"convolution_{i}"
            )
            x, mask = convolution(x, mask=mask), convolution.compute_mask(x, mask)
        for i in range(num_layers):
            layer = make_bidirectional(cell, units, dtype, f"encoder_{i}")
            outputs, *_ = layer(drop(x, f"dropout_{i}"), mask=mask)
            x = x + outputs if i else outputs
        logits = CTCLogits(vocabulary_size, dtype=dtype, name="logits")
        super().__init__(
            inputs=inputs, outputs=logits(drop(x, "output_dropout"), mask=mask), **kwargs
        )
