"""Computes the parts of a report besides the scores: attention, and texts of the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras_seq.analysis.explanation import Explainer
from keras_seq.analysis.reports.lines import Answers
from keras_seq.evaluation.resampling import spread
from keras_seq.inference.autoencoder import Autoencoder
from keras_seq.inference.generator import Generator
from keras_seq.inference.translator import Translator
from keras_seq.run import Run
from keras_seq.settings import TASKS

_ATTENDED = 6
# Tokens of a source whose attention fits on a page.
_MAX_TOKENS = 60
_SAMPLES = 5
_STEPS = 5


def attention_rows(run: Run, model: Any, answers: Answers) -> list[dict[str, Any]]:
    """Returns the attention weights of some lines; none for models without such weights."""
    if run.settings.task != "translate" or not hasattr(model, "with_attention"):
        return []
    explain = Explainer(run, model)
    texts = [text for text in answers.sources if text.strip()]
    lengths = map(len, run.source_tokenizer.encode(texts))
    short = [text for text, length in zip(texts, lengths, strict=True) if length <= _MAX_TOKENS]
    lines = [short[index] for index in spread(_ATTENDED, len(short))]
    translations = Translator.of_run(run, model).translate(lines)
    rows = []
    for line, found in zip(
        zip(lines, translations, strict=True),
        explain.best_attention(lines, translations),
        strict=True,
    ):
        source, hypotheses = line
        if found is None:
            continue
        source_tokens, tokens = explain.pieces(found)
        weights = (found.weights * 1000).round().astype(int).reshape(-1).tolist()
        rows.append(
            {
                "source": source,
                "text": hypotheses[0].text,
                "source_tokens": source_tokens,
                "tokens": tokens,
                "weights": weights,
            }
        )
    return rows


def generated_texts(run: Run, model: Any) -> list[dict[str, Any]]:
    """Returns titled lists of texts that a language model or an autoencoder writes."""
    task = run.settings.task
    if task == "language-model":
        search = run.settings.search
        beam = max(search.beam_size, _SAMPLES)
        search = search.model_copy(update={"n_best": _SAMPLES, "beam_size": beam})
        generator = Generator.of_run(run, model, search)
        texts = [hypothesis.text for hypothesis in generator.generate([""])[0]]
        return [{"title": "Texts that the model generates", "texts": texts}]
    if not TASKS[task].autoencoding:
        return []
    autoencoder = Autoencoder.of_run(run, model)
    samples = {"title": "Texts of random codes", "texts": autoencoder.sample(_SAMPLES)}
    lines = [line for line in run.valid_lines()[0] if line.strip()]
    if len(lines) < 2:
        return [samples]
    path = autoencoder.interpolate(lines[0], lines[-1], steps=_STEPS)
    return [samples, {"title": "From one text to another, in equal steps", "texts": path}]


def reconstructed(run: Run, model: Any, texts: Sequence[str]) -> list[str]:
    """Returns the texts that an autoencoder decodes from the codes of texts."""
    return Autoencoder.of_run(run, model).reconstruct(texts)
