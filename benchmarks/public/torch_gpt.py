"""A plain GPT of characters in PyTorch: KIND WORK SEED MINUTES.

The shape is nanoGPT's for processors, and so are the settings of the training: 4 layers, 4 heads,
width 128, blocks of 64, batches of 12, AdamW with 0.001 and cosine decay, no dropout. The training
ends after MINUTES of processor time. Writes the nats of a character of dev.txt and test.txt into
score-dev.txt and score-test.txt: blocks overlap by half, and of each the second half counts.
"""

from __future__ import annotations

import math
import pathlib
import sys
import time

import peer_files
import torch
from torch import nn
from torch.nn import functional

BLOCK, BATCH, WIDTH, HEADS, LAYERS = 64, 12, 128, 4, 4
RATE, WARMUP, DECAY = 1e-3, 100, 0.1


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH, bias=False), nn.LayerNorm(WIDTH, bias=False)
        self.joined = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.output = nn.Linear(WIDTH, WIDTH, bias=False)
        self.inner = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.outer = nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, steps, _ = x.shape
        split = (rows, steps, HEADS, WIDTH // HEADS)
        heads = [
            part.view(split).transpose(1, 2) for part in self.joined(self.first(x)).chunk(3, -1)
        ]
        attended = functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.output(attended.transpose(1, 2).reshape(rows, steps, WIDTH))
        return x + self.outer(functional.gelu(self.inner(self.second(x))))


class Gpt(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.characters, self.places = nn.Embedding(size, WIDTH), nn.Embedding(BLOCK, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH, bias=False)
        for name, weight in self.named_parameters():
            if weight.ndim > 1:
                scale = (
                    (2 * LAYERS) ** -0.5 if name.endswith(("output.weight", "outer.weight")) else 1
                )
                nn.init.normal_(weight, std=0.02 * scale)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.characters(ids) + self.places(torch.arange(ids.shape[1]))
        return self.norm(self.blocks(x)) @ self.characters.weight.T


def train(model: Gpt, ids: torch.Tensor, minutes: float) -> None:
    decayed = [weight for weight in model.parameters() if weight.ndim > 1]
    others = [weight for weight in model.parameters() if weight.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.99))
    begin, step = time.process_time(), 0
    while (done := (time.process_time() - begin) / (60 * minutes)) < 1:
        rate = RATE * (0.1 + 0.9 * (1 + math.cos(math.pi * done)) / 2)
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1, (step + 1) / WARMUP)
        starts = torch.randint(len(ids) - BLOCK, (BATCH,))
        rows = torch.stack([ids[start : start + BLOCK + 1] for start in starts])
        logits = model(rows[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
    print(f"{step} updates, the last loss {loss.item():.3f}", file=sys.stderr)


@torch.no_grad()
def nats_per_character(model: Gpt, ids: torch.Tensor) -> float:
    blocks = ids.unfold(0, BLOCK + 1, BLOCK // 2)
    total, counted = 0.0, 0
    for number, rows in enumerate(blocks.split(100)):
        logits = model(rows[:, :-1]).transpose(1, 2)
        losses = functional.cross_entropy(logits, rows[:, 1:], reduction="none")
        if number == 0:
            total, counted = losses[0, : BLOCK // 2].sum().item(), BLOCK // 2
        second = losses[:, BLOCK // 2 :]
        total, counted = total + second.sum().item(), counted + second.numel()
    return total / counted


def main() -> None:
    work, seed, minutes = pathlib.Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    torch.manual_seed(seed)
    texts = {
        part: (work / f"{part}.txt").read_text("utf-8") for part in ("train", *peer_files.PREDICTED)
    }
    numbers = {character: i for i, character in enumerate(sorted(set("".join(texts.values()))))}
    ids = {
        part: torch.tensor([numbers[character] for character in text])
        for part, text in texts.items()
    }
    model = Gpt(len(numbers))
    train(model, ids["train"], minutes)
    peer_files.write_seconds(work)
    for part in peer_files.PREDICTED:
        (work / f"score-{part}.txt").write_text(str(nats_per_character(model, ids[part])))


main()
