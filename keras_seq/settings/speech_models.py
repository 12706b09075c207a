"""Settings of models that recognize speech."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from keras_seq.settings.section import ModelSection, a_choice, a_family, a_number, a_share


class SpeechSettings(ModelSection):
    """Features of recordings and their augmentation."""

    num_mels: int = a_number(40, 1, 1024, "Mel bands of a step of features.")
    frame_length: float = a_number(0.025, 0.001, 1, "Window of a step of features, in seconds.")
    frame_step: float = a_number(0.01, 0.001, 1, "Time between steps of features, in seconds.")
    frequency_masks: int = a_number(2, 0, 100, "Random bands of features masked in training.")
    frequency_width: int = a_number(8, 0, 1024, "Most features in a masked band.")
    time_masks: int = a_number(2, 0, 100, "Random spans of time masked in training.")
    time_share: float = a_share(0.05, "Largest share of a recording in a masked span.")
    speed_change: float = a_share(
        0.0, "Largest relative change of the speed of recordings in training."
    )

    def feature_arguments(self) -> dict[str, Any]:
        """Keyword arguments of `LogMelSpectrogram`."""
        return self.model_dump(include={"num_mels", "frame_length", "frame_step"})

    def augmentation_arguments(self) -> dict[str, Any]:
        """Keyword arguments of `SpecAugment`."""
        names = {"frequency_masks", "frequency_width", "time_masks", "time_share"}
        return self.model_dump(include=names)

    def model_arguments(self) -> dict[str, Any]:
        """All values but those of features and augmentation."""
        return self.model_dump(exclude={"family", *SpeechSettings.model_fields})

    @property
    def embedding_width(self) -> int:
        return self.num_mels


class CTCRecognizerSettings(SpeechSettings):
    """The shape of a `CTCRecognizer`."""

    model_class = "keras_seq.models:CTCRecognizer"
    family: Literal["speech-ctc"] = a_family("speech-ctc")
    convolutions: int = a_number(1, 0, 6, "Convolutions, each of which halves the number of steps.")
    convolution_units: int = a_number(128, 1, 16_384, "Width of the convolutions.")
    cell: Literal["gru", "lstm"] = a_choice("gru", "Recurrent cell.")
    num_layers: int = a_number(2, 1, 100, "Number of layers.")
    units: int = a_number(128, 1, 16_384, "Units of a layer, in each direction.")
    dropout: float = a_share(0.2, "Dropout rate between layers.")

    def arguments(self) -> dict[str, Any]:
        arguments = self.model_arguments()
        return arguments | {"strides": [2] * arguments.pop("convolutions")}

    @property
    def output_width(self) -> int:
        return 2 * self.units

    @property
    def activations(self) -> int:
        return 8 * self.units * self.num_layers

    def min_parameters(self) -> int:
        return 6 * self.units**2 * self.num_layers


class AttentionRecognizerSettings(SpeechSettings):
    """The shape of an `AttentionRecognizer`."""

    model_class = "keras_seq.models:AttentionRecognizer"
    family: Literal["speech-attention"] = a_family("speech-attention")
    cell: Literal["gru", "lstm"] = a_choice("gru", "Recurrent cell.")
    num_encoder_layers: int = a_number(3, 1, 10, "Encoder layers; all but one halve the steps.")
    num_decoder_layers: int = a_number(1, 1, 100, "Decoder layers.")
    embedding_units: int = a_number(64, 1, 16_384, "Width of the embeddings.")
    encoder_units: int = a_number(128, 1, 16_384, "Units of an encoder layer, in each direction.")
    decoder_units: int = a_number(256, 1, 16_384, "Units of a decoder layer.")
    attention: Literal["location", "bahdanau"] = a_choice(
        "location", "Kind of attention; location: also by its previous weights."
    )
    attention_units: int = a_number(128, 1, 16_384, "Width of the attention scores' hidden layer.")
    dropout: float = a_share(0.2, "Dropout rate between layers.")
    attention_dropout: float = a_share(0.0, "Dropout rate of attention weights.")
    ctc_weight: float = a_share(
        0.3, "Share of connectionist temporal classification in the loss; 0: attention alone."
    )

    def arguments(self) -> dict[str, Any]:
        arguments = self.model_arguments()
        return arguments | {"ctc": arguments.pop("ctc_weight") > 0}

    @property
    def output_width(self) -> int:
        return self.decoder_units

    @property
    def activations(self) -> int:
        return 8 * self.encoder_units * self.num_encoder_layers

    def min_parameters(self) -> int:
        return 6 * self.encoder_units**2 * self.num_encoder_layers


class WakeWordSettings(ModelSection):
    """The shape of a `TriggerWordDetector`, its features and the noise of its training."""

    model_class = "keras_seq.models:TriggerWordDetector"
    family: Literal["wake-word"] = a_family("wake-word")
    num_mels: int = a_number(40, 1, 1024, "Mel bands of a step of features.")
    frame_length: float = a_number(0.032, 0.001, 1, "Window of a step of features, in seconds.")
    frame_step: float = a_number(0.016, 0.001, 1, "Time between steps of features, in seconds.")
    kernel_size: int = a_number(5, 1, 1000, "Steps that the convolution reads.")
    num_layers: int = a_number(1, 1, 100, "Number of layers.")
    units: int = a_number(64, 1, 16_384, "Units of a layer.")
    dropout: float = a_share(0.2, "Dropout rate between layers.")
    detection_seconds: float = a_number(
        0.4, 0.05, 10, "Time after the end of a word in which it is detected, in seconds."
    )
    noise_rate: float = Field(
        default=0.8, ge=0, le=1, description="Share of recordings with noise in training."
    )
    least_noise: float = a_number(
        50.0, -20, 200, "Largest signal-to-noise ratio of the noise in training, in decibels."
    )
    most_noise: float = a_number(
        5.0, -20, 200, "Least signal-to-noise ratio of the noise in training, in decibels."
    )

    def arguments(self) -> dict[str, Any]:
        return self.model_dump(include={"kernel_size", "num_layers", "units", "dropout"})

    def step_samples(self, rate: int) -> int:
        """Samples of a step of features."""
        return round(self.frame_step * rate)

    @property
    def detection_steps(self) -> int:
        """Steps of features in which a word is detected after its end."""
        return max(1, round(self.detection_seconds / self.frame_step))

    @property
    def embedding_width(self) -> int:
        return self.num_mels

    @property
    def activations(self) -> int:
        return 4 * self.units * self.num_layers

    def min_parameters(self) -> int:
        return 3 * self.units**2 * self.num_layers
