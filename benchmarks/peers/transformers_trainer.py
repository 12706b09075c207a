"""Plain training loop for Marian of transformers, run in its own environment."""

import argparse
import pathlib

import marian
import torch
import torch_feed
import worker


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus", type=pathlib.Path)
    parser.add_argument("--threads", type=int, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    model = marian.small(dropout=0.1)

    def loss_of(source, inputs, outputs):
        answer = model(
            input_ids=source,
            attention_mask=(source != worker.PAD).long(),
            decoder_input_ids=inputs,
            use_cache=False,
        )
        return torch_feed.smoothed(answer.logits, outputs)

    torch_feed.serve(model, loss_of, arguments.corpus, "transformers", "torch")


if __name__ == "__main__":
    main()
