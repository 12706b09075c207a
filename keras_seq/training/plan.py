"""What a training would be, without doing it."""

from typing import Any

from keras_seq.run import Run
from keras_seq.run.models import build_run_model
from keras_seq.settings import TASKS
from keras_seq.training.feed import training_stream

# What Python with TensorFlow and a traced training step take before the first tensor.
_RUNTIME_BYTES = 700 * 2**20


def plan(run: Run) -> str:
    """Describes the training of a prepared run: settings, size, first batch as text.

    Args:
        run: Made by `prepare_run`.

    Returns:
        Lines of text.
    """
    settings = run.settings
    stream = training_stream(run)
    model = build_run_model(run)
    parameters = model.count_params()
    batch = stream.batch(0)
    rows, source_steps = batch["source"].shape
    target_steps = batch["target_output"].shape[1]
    lines = [
        settings.to_toml().rstrip(),
        "",
        f"parameters         {parameters:,}",
        f"memory, about      {_memory(run, parameters) / 2**20:,.0f} MiB",
        f"batches an epoch   {stream.batches_per_epoch:,}",
        f"batches an update  {settings.training.micro_batches:,}",
    ]
    shown = slice(0, 3)
    if settings.task in ("language-model", "vae"):
        texts = run.target_tokenizer.decode(_ids(batch["target_output"][shown]))
        lines.append(f"first batch        {rows} rows, {target_steps} steps")
        return "\n".join([*lines, *(f"  text             {text}" for text in texts)])
    if TASKS[settings.task].has_labels:
        texts = run.source_tokenizer.decode(_ids(batch["source"][shown]))
        lines.append(f"first batch        {rows} rows, {source_steps} steps")
        for text, labels in zip(texts, batch["target_output"][shown], strict=True):
            names = " ".join(name for name in map(run.labels.name, labels) if name)
            lines += [f"  text             {text}", f"  label            {names}"]
        return "\n".join(lines)
    lines.append(
        f"first batch        {rows} pairs, {source_steps} source and {target_steps} target steps"
    )
    sources = run.source_tokenizer.decode(_ids(batch["source"][shown]))
    targets = run.target_tokenizer.decode(_ids(batch["target_output"][shown]))
    for source, target in zip(sources, targets, strict=True):
        lines += [f"  source           {source}", f"  target           {target}"]
    return "\n".join(lines)


def _ids(rows: Any) -> list[list[int]]:
    return [[int(token) for token in row] for row in rows]


def _memory(run: Run, parameters: int) -> int:
    """Bytes of weights, gradients, optimizer and the largest tensors of a step; a guess."""
    settings = run.settings
    tokens = settings.training.batch_tokens
    # Weights, gradients and Adam's two moments; the moving average; the sums of gradients.
    copies = 4 + bool(settings.training.ema) + (settings.training.micro_batches > 1)
    fixed = parameters * 4 * copies
    # Logits, their softmax and their gradient, one of them twice, are a step's largest tensors.
    targets = tokens if settings.task != "classify" else 1
    logits = targets * run.vocabularies[1].vocabulary_size * 4 * 4
    activations = tokens * settings.model.activations * 4
    return _RUNTIME_BYTES + fixed + logits + activations
