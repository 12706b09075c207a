"""A plain Transformer in PyTorch: KIND WORK SEED MINUTES.

The shape and the training are those of the preset `transformer-tiny`: 4 layers, width 128, 4 heads,
feed-forward 256, dropout 0.3, a target table shared with the output, label smoothing 0.1, Adam with
0.005 after 1,500 updates of warm-up and inverse square root decay, batches of 4,096 tokens of
similar length. The training ends after MINUTES of processor time. Beam search of 5, by mean
log-probability, writes the tokens of dev.tsv and test.tsv
into predicted-dev.txt and predicted-test.txt.
"""

from __future__ import annotations

import math
import pathlib
import random
import sys
import time
from collections.abc import Iterator

import peer_files
import torch
from torch import nn
from torch.nn import functional

PAD, BOS, EOS = 0, 2, 3
WIDTH, HEADS, LAYERS, INNER, DROPOUT = 128, 4, 4, 256, 0.3
RATE, WARMUP, BATCH_TOKENS, BEAM = 0.005, 1500, 4096, 5
Pair = tuple[list[int], list[int]]


class Translator(nn.Module):
    def __init__(self, sizes: list[int]) -> None:
        super().__init__()
        self.source, self.target = (nn.Embedding(size, WIDTH, padding_idx=PAD) for size in sizes)
        for table in (self.source, self.target):
            nn.init.normal_(table.weight, std=WIDTH**-0.5)
        self.dropout = nn.Dropout(DROPOUT)
        self.transformer = nn.Transformer(
            WIDTH, HEADS, LAYERS, LAYERS, INNER, DROPOUT, batch_first=True, norm_first=True
        )
        rates = torch.exp(torch.arange(0, WIDTH, 2) * (-math.log(10_000) / WIDTH))
        angles = torch.arange(1024)[:, None] * rates
        self.register_buffer("positions", torch.cat([angles.sin(), angles.cos()], -1))

    def embed(self, table: nn.Embedding, ids: torch.Tensor) -> torch.Tensor:
        return self.dropout(table(ids) * WIDTH**0.5 + self.positions[: ids.shape[1]])

    def encode(self, source: torch.Tensor) -> torch.Tensor:
        return self.transformer.encoder(
            self.embed(self.source, source), src_key_padding_mask=source == PAD
        )

    def decode(
        self, encoded: torch.Tensor, source: torch.Tensor, target: torch.Tensor
    ) -> torch.Tensor:
        steps = target.shape[1]
        states = self.transformer.decoder(
            self.embed(self.target, target),
            encoded,
            tgt_mask=torch.ones(steps, steps, dtype=torch.bool).triu(1),
            memory_key_padding_mask=source == PAD,
            tgt_is_causal=True,
        )
        return functional.linear(states, self.target.weight)


def padded(rows: list[list[int]]) -> torch.Tensor:
    width = max(map(len, rows))
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])


def batches(pairs: list[Pair]) -> Iterator[list[Pair]]:
    """Yields batches for ever; pairs of similar length are together, batches are shuffled."""
    while True:
        random.shuffle(pairs)
        made: list[list[Pair]] = [[]]
        widest = 0
        for pair in sorted(pairs, key=lambda pair: (len(pair[1]), len(pair[0]))):
            widest = max(widest, len(pair[0]) + 1, len(pair[1]) + 1)
            if made[-1] and widest * (len(made[-1]) + 1) > BATCH_TOKENS:
                made.append([])
                widest = max(len(pair[0]), len(pair[1])) + 1
            made[-1].append(pair)
        random.shuffle(made)
        yield from made


def train(model: Translator, pairs: list[Pair], minutes: float) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, betas=(0.9, 0.98), fused=True)
    begin, step = time.process_time(), 0
    model.train()
    for batch in batches(pairs):
        if time.process_time() - begin > 60 * minutes:
            break
        step += 1
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(step / WARMUP, (WARMUP / step) ** 0.5)
        source = padded([[*ids, EOS] for ids, _ in batch])
        inputs = padded([[BOS, *ids] for _, ids in batch])
        outputs = padded([[*ids, EOS] for _, ids in batch])
        logits = model.decode(model.encode(source), source, inputs)
        loss = functional.cross_entropy(
            logits.flatten(0, 1), outputs.flatten(), ignore_index=PAD, label_smoothing=0.1
        )
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 200 == 0:
            print(f"{step} updates, loss {loss.item():.3f}", file=sys.stderr, flush=True)


@torch.no_grad()
def translate(model: Translator, ids: list[int]) -> list[int]:
    """Returns the tokens of the best ended hypothesis of a beam search."""
    source = torch.tensor([[*ids, EOS]])
    encoded = model.encode(source)
    rows, scores = [[BOS]], torch.zeros(1)
    ended: list[tuple[float, list[int]]] = []
    for step in range(1, 2 * len(ids) + 20):
        size = len(rows)
        logits = model.decode(
            encoded.expand(size, -1, -1), source.expand(size, -1), torch.tensor(rows)
        )
        totals = scores[:, None] + logits[:, -1].log_softmax(-1)
        best, places = totals.flatten().topk(2 * BEAM)
        found = [
            (score, rows[place // totals.shape[1]], place % totals.shape[1])
            for score, place in zip(best.tolist(), places.tolist(), strict=True)
        ]
        ended += [(score / step, row[1:]) for score, row, token in found[:BEAM] if token == EOS]
        going = [(score, [*row, token]) for score, row, token in found if token != EOS][:BEAM]
        if len(ended) >= BEAM:
            break
        rows, scores = [row for _, row in going], torch.tensor([score for score, _ in going])
    return max(ended or [(0.0, rows[0][1:])])[1]


def main() -> None:
    work, seed, minutes = pathlib.Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    torch.manual_seed(seed)
    random.seed(seed)
    pairs = {
        part: [tuple([int(word) for word in cell.split()] for cell in row) for row in rows]
        for part in ("train", *peer_files.PREDICTED)
        for rows in [peer_files.read(work, part)]
    }
    words = [(work / f"{side}.words").read_text().split() for side in ("source", "target")]
    model = Translator([len(each) for each in words])
    train(model, pairs["train"], minutes)
    peer_files.write_seconds(work)
    model.eval()
    for part in peer_files.PREDICTED:
        lines = [" ".join(map(str, translate(model, pair[0]))) for pair in pairs[part]]
        peer_files.write(work, part, lines)


main()
