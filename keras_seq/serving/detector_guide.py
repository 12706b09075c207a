"""Parts of the guide to an exported wake word detector."""

from __future__ import annotations

from typing import Any

import numpy as np

from keras_seq.serving.guide import GuideParts
from keras_seq.serving.recognizer_guide import PADDING, sound_request

_DESCRIPTION = """\
`serving_default`, the signature used above: `samples`, one recording per row as floats from -1 to 1
at {rate:,} samples per second. `lengths` is their number in each row without padding. For each row:

* `detections`: the detected words and the times in seconds, such as `{word}:0.52 {word}:2.31`; `-`
  if there are none. A word is detected once in {hold:.2f} seconds, where its probability reaches
  {threshold:.3f}.
* `probability`: the highest probability of each word: {words}.

`stream`, with `"signature_name": "stream"` next to `"inputs"` in REST or
`request.model_spec.signature_name = "stream"` in gRPC, for sound that arrives in pieces: `samples`,
a multiple of {step} per row, and the state {state}, which is all 0 at the beginning and then that
of the last answer. It returns `probabilities` of each word for each {step} samples, and the new
state."""


def detector_guide(folder: str, detector: Any, example: np.ndarray, output: str) -> GuideParts:
    """Returns the guide of a wake word detector, including an example request, `example.json`."""
    states = {name: value.shape[1:] for name, value in detector.model.initial_state(1).items()}
    return sound_request(
        folder,
        "samples",
        example,
        writer="`keras-seq export`",
        purpose="takes audio and returns the words that are said in it",
        padding=PADDING,
        rest_print="""\
    outputs = json.load(response)["outputs"]
for text, probability in zip(outputs["detections"], outputs["probability"]):
    print(text, probability)""",
        output="detections",
        example_output=output,
        description=_DESCRIPTION.format(
            rate=detector.sample_rate,
            word=detector.words[0],
            hold=detector.hold * detector.frame_step / detector.sample_rate,
            threshold=detector.threshold,
            words=", ".join(detector.words),
            step=detector.frame_step,
            state=", ".join(f"`state_{name}` {list(shape)}" for name, shape in states.items()),
        ),
    )
