"""Plain training loop for `torch.nn.Transformer`, run in the environment of transformers."""

import argparse
import math
import pathlib

import torch
import torch_feed
import worker
from torch import nn

UNITS = 256


class Small(nn.Module):
    """The shape of `transformer-small`, with sinusoidal positions and one embedding table."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(worker.VOCABULARY, UNITS, padding_idx=worker.PAD)
        nn.init.normal_(self.table.weight, std=UNITS**-0.5)
        self.bias = nn.Parameter(torch.zeros(worker.VOCABULARY))
        self.dropout = nn.Dropout(0.1)
        self.transformer = nn.Transformer(
            UNITS, 4, 3, 3, 1024, dropout=0.1, batch_first=True, norm_first=True
        )
        steps = torch.arange(256)[:, None] * torch.exp(
            torch.arange(0, UNITS, 2) * (-math.log(10_000) / UNITS)
        )
        self.register_buffer("positions", torch.cat([steps.sin(), steps.cos()], -1))

    def embed(self, ids):
        return self.dropout(self.table(ids) * UNITS**0.5 + self.positions[: ids.shape[1]])

    def forward(self, source, target):
        padding = source == worker.PAD
        steps = target.shape[1]
        found = self.transformer(
            self.embed(source),
            self.embed(target),
            # The causal mask also hides target padding, which comes after all tokens.
            tgt_mask=torch.ones(steps, steps, dtype=torch.bool).triu(1),
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return nn.functional.linear(found, self.table.weight, self.bias)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus", type=pathlib.Path)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--precision", choices=["float32", "bfloat16"], required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    model = Small()
    lower = arguments.precision == "bfloat16"

    def loss_of(source, inputs, outputs):
        with torch.autocast("cpu", torch.bfloat16, enabled=lower):
            return torch_feed.smoothed(model(source, inputs), outputs)

    torch_feed.serve(model, loss_of, arguments.corpus, "torch")


if __name__ == "__main__":
    main()
