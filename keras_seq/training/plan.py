"""Describes a training without running it."""

from keras_seq.run import Run
from keras_seq.run.models import build_run_model
from keras_seq.settings import TASKS
from keras_seq.training.feed import training_stream

# Memory for Python, TensorFlow and a traced training step, excluding tensors.
_RUNTIME_BYTES = 700 * 2**20
# Number of rows of the first batch to show.
_ROWS = 3


def plan(run: Run) -> str:
    """Describes the training of a run from `prepare_run`: settings, size and first batch."""
    settings = run.settings
    stream = training_stream(run)
    model = build_run_model(run)
    parameters = model.count_params()
    batch = stream.batch(0)
    lines = [
        settings.to_toml().rstrip(),
        "",
        f"parameters         {parameters:,}",
        f"memory, about      {_memory(run, parameters) / 2**20:,.0f} MiB",
        f"batches an epoch   {stream.batches_per_epoch:,}",
        f"batches an update  {settings.training.micro_batches:,}",
    ]
    lines += TASKS[settings.task].preview(run, batch, _ROWS)
    return "\n".join(lines)


def _memory(run: Run, parameters: int) -> int:
    """Estimates the bytes of weights, gradients, optimizer and the largest tensors of a step."""
    settings = run.settings
    tokens = settings.training.batch_tokens
    # Weights, gradients and two moments; the moving average; accumulated gradients.
    copies = 4 + bool(settings.training.ema) + (settings.training.micro_batches > 1)
    fixed = parameters * 4 * copies
    # The largest tensors of a step are the logits, their softmax, their gradient, and one copy.
    targets = tokens if settings.task != "classify" else 1
    logits = targets * run.vocabularies[1].vocabulary_size * 4 * 4
    activations = tokens * settings.model.activations * 4
    return _RUNTIME_BYTES + fixed + logits + activations
