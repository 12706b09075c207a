"""Speech to labels by connectionist temporal classification."""

import keras
from keras import ops

from keras_seq.layers.internal.layer_normalization import LayerNormalization
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.layers.speech.ctc_logits import CTCLogits
from keras_seq.layers.speech.strided_convolution import StridedConvolution
from keras_seq.models.checks import check_choice, check_sizes
from keras_seq.models.listener import sound_inputs

# Shape letters: B batch, N samples, S steps of features, F frames, D features, U units, V labels.

RECURRENT = {"gru": keras.layers.GRU, "lstm": keras.layers.LSTM}


@keras.saving.register_keras_serializable(package="keras_seq")
class CTCRecognizer(keras.Model):
    """Says a label or the blank at each frame of speech, as a functional Keras model.

        features: x_s, log-mel or given, normalized over each step's features
        x         = one StridedConvolution after the other, which leave fewer frames
        h^i       = BiRNN(dropout(h^{i-1})), residual from layer 2
        logits    = W h^L + b;  the blank, which is label 0, at frames that are padding

        P(y | x)  = sum over alignments a of y of prod over t of P(a_t | x)

    It is trained by `losses.CTCLoss` on labels without times, and `search.ctc_greedy_search`
    or `search.ctc_beam_search` reads the labels off its logits.

    Shapes: B batch, N samples, S steps of features, F frames, D features, V labels.

    Args:
        vocabulary_size: Integer V, 2 at least: the labels, and the blank, which is 0.
        features: Layer that makes features and their mask of a dict of `samples` and
            `lengths`, such as `LogMelSpectrogram`; or a positive integer D, the number of
            features where the inputs have them already.
        strides: Positive integers, one for each convolution: F is S + 1 divided by each in
            turn, rounded up; the step more is padding. A label needs a frame, and two equal
            ones three; see `losses.ctc_needed_frames`.
        convolution_units: Positive integer, the features of a convolution.
        cell: "gru" or "lstm".
        num_layers: Positive integer L.
        units: Positive integer, in each direction.
        dropout: Float in [0, 1), on what each recurrent layer reads, and the last layer.
        seed: Optional integer, makes the dropout reproducible.

    Call arguments:
        inputs: Dict of `lengths` `(B,)`, how many samples or steps are real, and of float
            `samples` `(B, N)` or `features` `(B, S, D)`.

    Returns:
        Float32 logits `(B, F, V)`.

    Masks: made of the lengths. Padding changes nothing, whatever samples or features hold
    there; its frames say the blank.

    Raises:
        ValueError: If `cell` is neither of these, or a size or rate is out of range.

    Example:

    >>> from keras_seq.layers import LogMelSpectrogram
    >>> model = CTCRecognizer(11, LogMelSpectrogram(8000, num_mels=20), units=8,
    ...     convolution_units=8, num_layers=1)
    >>> sound = {"samples": keras.ops.zeros((1, 4000)), "lengths": keras.ops.array([3000])}
    >>> tuple(model(sound).shape)
    (1, 25, 11)

    Reference:
        Graves, Fernández, Gomez and Schmidhuber, "Connectionist Temporal Classification",
        ICML 2006; with convolutions: Amodei et al., "Deep Speech 2", ICML 2016, section 3,
        https://arxiv.org/abs/1512.02595
    """

    def __init__(
        self,
        vocabulary_size,
        features,
        *,
        strides=(2,),
        convolution_units=128,
        cell="gru",
        num_layers=2,
        units=128,
        dropout=0.1,
        seed=None,
        name="ctc_recognizer",
        **kwargs,
    ):
        dtype = kwargs.pop("dtype", None)
        check_choice("cell", cell, tuple(RECURRENT))
        check_sizes(num_layers=num_layers, units=units, convolution_units=convolution_units)
        # Keras hands a tuple back as a list.
        strides = tuple(strides)
        seeds = split_seed(seed, num_layers + 1)

        def dropped(x, place):
            layer = keras.layers.Dropout(dropout, seed=seeds.pop(), dtype=dtype, name=place)
            return layer(x)

        inputs, x, mask = sound_inputs(features)
        # One step of padding: recurrent layers fail where there is none at all.
        x = ops.pad(x, [[0, 0], [0, 1], [0, 0]])
        mask = ops.pad(mask, [[0, 0], [0, 1]])
        # Epsilon: of silence all features are equal.
        x = LayerNormalization(epsilon=1e-3, dtype=dtype, name="normalization")(x)
        for i, stride in enumerate(strides):
            convolution = StridedConvolution(
                convolution_units, stride, 2 * stride + 1, dtype=dtype, name=f"convolution_{i}"
            )
            x, mask = convolution(x, mask=mask), convolution.compute_mask(x, mask)
        for i in range(num_layers):
            layer = keras.layers.Bidirectional(
                # The inner name is given, so that weights are called the same in all processes.
                RECURRENT[cell](units, return_sequences=True, dtype=dtype, name=cell),
                dtype=dtype,
                name=f"encoder_{i}",
            )
            outputs = layer(dropped(x, f"dropout_{i}"), mask=mask)
            x = x + outputs if i else outputs
        logits = CTCLogits(vocabulary_size, dtype=dtype, name="logits")
        super().__init__(
            inputs=inputs,
            outputs=logits(dropped(x, "output_dropout"), mask=mask),
            name=name,
            **kwargs,
        )
        # A functional model takes no `dtype`, and would have the global policy whatever its layers.
        if dtype is not None:
            self.dtype_policy = dtype
        self._config = {
            "vocabulary_size": vocabulary_size,
            "features": keras.saving.serialize_keras_object(features),
            "strides": list(strides),
            "convolution_units": convolution_units,
            "cell": cell,
            "num_layers": num_layers,
            "units": units,
            "dropout": dropout,
            "seed": seed,
        }

    def get_config(self):
        return {
            **self._config,
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        features = keras.saving.deserialize_keras_object(
            config["features"], custom_objects=custom_objects
        )
        return cls(**config | {"features": features})
