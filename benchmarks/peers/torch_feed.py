"""Common code of the torch loops: keras-seq's batches as tensors, and an update."""

import itertools
import json
import pathlib

import torch
import worker


def serve(model, loss_of, corpus: pathlib.Path, *packages: str) -> None:
    """Serves training requests; `loss_of` takes source, target inputs and target outputs."""
    batches = itertools.cycle(json.loads((corpus / "batches.json").read_text()))
    # The fused implementation is faster than the default.
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), fused=True)
    model.train()

    def train(count):
        tokens = 0
        for batch in itertools.islice(batches, count):
            source = _tensor([[*source, worker.EOS] for source, _ in batch])
            inputs = _tensor([[worker.BOS, *target] for _, target in batch])
            outputs = _tensor([[*target, worker.EOS] for _, target in batch])
            optimizer.zero_grad()
            loss_of(source, inputs, outputs).backward()
            optimizer.step()
            tokens += int((outputs != worker.PAD).sum())
        return tokens

    worker.serve_training(train, *packages)


def smoothed(logits, outputs):
    """Mean cross-entropy over tokens without padding, with label smoothing."""
    return torch.nn.functional.cross_entropy(
        logits.flatten(0, 1).float(),
        outputs.flatten(),
        ignore_index=worker.PAD,
        label_smoothing=0.1,
    )


def _tensor(rows):
    return torch.tensor(worker.padded(rows, worker.PAD))
