"""Rows of speech; see `conformance.table`.

Lengths, not masks, say how much of a sound is real: here they are made of the row's mask.
"""

from functools import partial

from conformance import steps
from conformance.harness import Row
from keras import ops

from keras_seq import layers, models

# One frame per sample, so that the axes are those of the harness.
FRONT = {
    "sampling_rate": 100,
    "num_mels": 6,
    "frame_length": 5,
    "frame_step": 1,
    "fft_length": 64,
    "causal": True,
}
RECOGNIZER = {
    "vocabulary_size": 20,
    "embedding_units": 8,
    "encoder_units": 4,
    "decoder_units": 8,
    "attention_units": 8,
    "num_encoder_layers": 2,
}


def lengths_of(mask):
    return ops.sum(ops.cast(mask, "int32"), axis=1)


def frames(layer, arrays):
    return layer({"samples": arrays["inputs"], "lengths": lengths_of(arrays["mask"])})


def heard(layer, arrays):
    """Returns the samples and drops their number."""
    samples, _ = frames(layer, arrays)
    return samples


def pieces(layer, arrays):
    """Reads a stream of two samples at a time."""
    samples, outputs = arrays["inputs"], []
    state = layer.initial_state(samples.shape[0])
    for start in range(0, samples.shape[1], 2):
        output, state = layer.step(samples[:, start : start + 2], state)
        outputs.append(output)
    return ops.concatenate(outputs, axis=1)


def source_of(arrays):
    """Returns the input of a recognizer: samples or features, and their number."""
    (name,) = {"samples", "features"} & set(arrays)
    return {name: arrays[name], "lengths": lengths_of(arrays["mask"])}


def recognize(model, arrays):
    return model({"source": source_of(arrays), "target": arrays["target"]})


def spell(model, arrays):
    return steps.model(model, {"source": source_of(arrays), "target": arrays["target"]})


def answer(model, arrays):
    return model(source_of(arrays))


def stream(model, arrays):
    """Streams pieces of two steps, then of four."""
    (name,) = {"samples", "features"} & set(arrays)
    state, logits = model.initial_state(arrays[name].shape[0]), []
    for start, end in ((0, 2), (2, 6)):
        heard = model.stream_step({name: arrays[name][:, start:end], "state": state})
        state = heard["state"]
        logits.append(heard["logits"])
    return ops.concatenate(logits, axis=1)


ROWS: list[Row] = [
    Row(
        "LogMelSpectrogram",
        make=partial(layers.LogMelSpectrogram, **FRONT),
        inputs={"inputs": "BS"},
        masks={"mask": "S"},
        outputs=["BSE"],
        call=frames,
        step=pieces,
        masked_by_lengths=True,
    ),
    Row(
        "RandomNoise",
        make=layers.RandomNoise,
        inputs={"inputs": "BS"},
        masks={"mask": "S"},
        outputs=["BS"],
        call=frames,
        float32_outputs=[0],
        masked_by_lengths=True,
    ),
    Row(
        "RandomSpeed",
        make=layers.RandomSpeed,
        inputs={"inputs": "BS"},
        masks={"mask": "S"},
        outputs=["BS"],
        call=heard,
        float32_outputs=[0],
        masked_by_lengths=True,
    ),
    Row(
        "SpecAugment",
        make=layers.SpecAugment,
        inputs={"inputs": "BTD"},
        masks={"mask": "T"},
        outputs=["BTD"],
    ),
    Row(
        "AttentionRecognizer-features",
        make=partial(models.AttentionRecognizer, features=8, ctc=True, **RECOGNIZER),
        inputs={"features": "BSD", "target": "BT ids"},
        masks={"mask": "S"},
        outputs=["BTV"],
        call=recognize,
        float32_outputs=[0],
        step=spell,
        masked_by_lengths=True,
    ),
    Row(
        "AttentionRecognizer-samples",
        make=lambda: models.AttentionRecognizer(
            features=layers.LogMelSpectrogram(**FRONT),
            cell="lstm",
            attention="bahdanau",
            num_decoder_layers=2,
            **RECOGNIZER,
        ),
        inputs={"samples": "BS", "target": "BT ids"},
        masks={"mask": "S"},
        outputs=["BTV"],
        call=recognize,
        float32_outputs=[0],
        step=spell,
        masked_by_lengths=True,
    ),
    Row(
        "TriggerWordDetector-samples",
        make=lambda: models.TriggerWordDetector(
            layers.LogMelSpectrogram(**FRONT), 6, units=8, noise=layers.RandomNoise()
        ),
        inputs={"samples": "BS"},
        masks={"mask": "S"},
        outputs=["BSE"],
        call=answer,
        float32_outputs=[0],
        step=stream,
        masked_by_lengths=True,
    ),
    Row(
        "TriggerWordDetector-features",
        make=partial(models.TriggerWordDetector, 8, 6, units=8, kernel_size=1, num_layers=2),
        inputs={"features": "BSD"},
        masks={"mask": "S"},
        outputs=["BSE"],
        call=answer,
        float32_outputs=[0],
        step=stream,
        masked_by_lengths=True,
    ),
]
