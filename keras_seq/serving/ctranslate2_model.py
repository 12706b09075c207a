"""Export of a run to a CTranslate2 model directory."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from keras_seq.run import Run
from keras_seq.scoring import bleu
from keras_seq.serving.ctranslate2_spec import (
    make_spec,
    open_directory,
    open_spec,
    require_ctranslate2,
    require_transformer,
    vocabularies,
)
from keras_seq.serving.ctranslate2_translator import PATIENCE, CTranslate2Translator
from keras_seq.serving.http.versions import RECORD_NAME
from keras_seq.serving.publishing import (
    check_destination,
    checkpoint_record,
    publish_directory,
)
from keras_seq.serving.verification import require_equal
from keras_seq.storage import write_file
from keras_seq.text import EOS_ID, InputError

QUANTIZATIONS = ("float32", "float16", "int16", "int8", "int8_float32", "int8_float16")

# Verify with greedy search, because the beam searches of Keras and CTranslate2 differ.
_GREEDY: dict[str, Any] = {"beam_size": 1, "n_best": 1, "length_normalization": "average"}
# The position table must cover the default `max_decoding_length` of CTranslate2, 256 tokens.
_MIN_POSITIONS = 256
_EXAMPLE_LENGTH = 60


def export_ctranslate2(
    run: Run,
    destination: str | os.PathLike[str],
    *,
    which: str | int = "best",
    quantization: str = "float32",
    verify: int = 100,
    notice: Callable[[str], None] | None = None,
) -> Path:
    """Atomically exports a run to a CTranslate2 model directory. Returns `destination`.

    The directory contains the model, the vocabularies, the SentencePiece models, the step of the
    weights (`checkpoint.json`), and a README.md with example code for translating. Using the
    exported model requires neither Keras nor this package.

    Args:
        run: An opened run with a trained Transformer.
        destination: The directory to create; it must not exist.
        which: `"best"`, `"latest"`, or the step of a stored checkpoint.
        quantization: Type of the stored weights, one of `QUANTIZATIONS`.
        verify: Number of lines of the run's validation text for which the model in float32 must
            return the greedy translations of `Translator`. For another quantization, the BLEU of
            these lines is reported. 0 skips the verification.
        notice: Called with lines that report the progress.

    Raises:
        InputError: CTranslate2 is not installed, the run has no weights or is not a Transformer,
            `destination` exists or cannot be written, or the verification fails; nothing is
            published.
    """
    report = notice or (lambda line: None)
    destination = Path(destination)
    if quantization not in QUANTIZATIONS:
        raise InputError(
            f"quantization: received {quantization!r}, expected one of {', '.join(QUANTIZATIONS)}"
        )
    require_ctranslate2()
    require_transformer(run)
    run.require_weights(which)
    check_destination(destination)
    search = run.settings.search
    longest = run.settings.data.max_source_length + 1
    positions = max(longest, search.max_length, _MIN_POSITIONS)

    sources, references = (lines[:verify] for lines in run.valid_lines()) if verify else ([], [])

    def spec(which: str | int) -> Any:
        return make_spec(run, which=which, positions=positions)

    def write(directory: Path) -> None:
        directory.mkdir()
        model = spec(which)
        step = run.loaded_step or 0
        write_file(directory / RECORD_NAME, checkpoint_record([run]))
        model.optimize(quantization=quantization)
        model.save(str(directory))
        _write_text_files(run, directory, quantization, sources)
        if not sources:
            return
        exported = _open_quietly(directory)
        reference = exported if quantization == "float32" else open_spec(spec(step), "float32")
        expected = _expected(run, step, sources)
        require_equal(sources, _translated(run, reference, sources), expected)
        report(f"{len(sources)} lines of the validation text come out as keras-seq translates them")
        if quantization != "float32":
            outputs = _translated(run, exported, sources)
            report(_compare(quantization, exported.compute_type, references, expected, outputs))

    return publish_directory(destination, write)


def _open_quietly(directory: Path) -> Any:
    """Opens a model without CTranslate2's warnings about types that the processor lacks."""
    module = require_ctranslate2()
    level = module.get_log_level()
    module.set_log_level(logging.ERROR)
    try:
        return open_directory(str(directory))
    finally:
        module.set_log_level(level)


def _expected(run: Run, step: int, sources: Sequence[str]) -> list[str]:
    # Imported here because only the verification needs Keras, which takes seconds to import.
    from keras_seq.inference.translator import Translator

    # The empty `notice` avoids a second report of damaged checkpoints.
    translator = Translator.load(run.path, which=step, notice=lambda line: None, **_GREEDY)
    return translator(sources)


def _translated(run: Run, model: Any, sources: Sequence[str]) -> list[str]:
    settings = run.settings.with_search(_GREEDY)
    return CTranslate2Translator(
        model,
        run.source_tokenizer,
        run.target_tokenizer,
        settings.search,
        settings.data.max_source_length,
    )(sources)


def _compare(
    quantization: str,
    compute_type: str,
    references: Sequence[str],
    expected: Sequence[str],
    outputs: Sequence[str],
) -> str:
    before, after = (bleu(lines, [references]).value for lines in (expected, outputs))
    different = sum(a != b for a, b in zip(expected, outputs, strict=True))
    # Do not report a more precise name of the same type, such as "int8_float32" for "int8".
    computed = "" if compute_type.startswith(quantization) else f", here computed in {compute_type}"
    return (
        f"{quantization}{computed}: BLEU {after:.2f} on them, {after - before:+.2f} against "
        f"{before:.2f} (greedy search); {different} lines differ"
    )


def _write_text_files(run: Run, directory: Path, quantization: str, sources: Sequence[str]) -> None:
    source, target = run.source_tokenizer, run.target_tokenizer
    names = ("joint.model",) * 2 if source is target else ("source.model", "target.model")
    for name, tokenizer in zip(names, (source, target), strict=True):
        write_file(directory / name, tokenizer.to_bytes())
    search = run.settings.search
    examples = [line for line in sources if 0 < len(line.strip()) <= _EXAMPLE_LENGTH]
    text = _README.format(
        quantization=quantization,
        models=" and ".join(f"`{name}`" for name in dict.fromkeys(names)),
        source=names[0],
        target=names[1],
        examples=examples[:2] or ["A dog runs."],
        longest=run.settings.data.max_source_length + 1,
        beam_size=search.beam_size,
        patience=PATIENCE,
        # CTranslate2 lacks GNMT normalization. Dividing by length**alpha is the closest to GNMT.
        alpha=0.0 if search.length_normalization == "none" else search.alpha,
        max_length=search.max_length,
        unwanted=[[piece] for piece in vocabularies(source, target)[1][:EOS_ID]],
    )
    write_file(directory / "README.md", text.encode("utf-8", "replace"))


_README = """\
# A translation model for CTranslate2

Weights in {quantization}, exported by keras-seq. {models} (SentencePiece) splits text into
pieces and joins them. To translate, run `python -m pip install ctranslate2 sentencepiece`, and in
this directory:

```python
import ctranslate2
import sentencepiece

source = sentencepiece.SentencePieceProcessor(model_file="{source}")
target = sentencepiece.SentencePieceProcessor(model_file="{target}")
# Fastest on a CPU: one thread per batch, and as many parallel batches as there are cores.
translator = ctranslate2.Translator(".", inter_threads=2, intra_threads=1)

lines = {examples}
results = translator.translate_batch(
    source.encode(lines, out_type=str),
    max_batch_size=32,
    beam_size={beam_size},
    patience={patience},
    length_penalty={alpha},
    max_input_length={longest},
    max_decoding_length={max_length},
    suppress_sequences={unwanted},
)
for result in results:
    print(target.decode(result.hypotheses[0]))
```

CTranslate2 appends the end token of the source (`config.json`). The model reads up to {longest}
pieces, end token included; longer sources are cut.
"""
