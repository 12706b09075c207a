"""JoeyNMT's `search` with new weights, run in its own environment: ids in, ids out."""

from types import SimpleNamespace

import joeynmt_shapes
import torch
import worker
from joeynmt.batch import Batch
from joeynmt.model import build_model
from joeynmt.search import search
from joeynmt.vocabulary import Vocabulary

# JoeyNMT's order of the special tokens.
UNK, PAD, BOS, EOS = range(4)
RENAMED = {worker.PAD: PAD, worker.UNK: UNK}


def main() -> None:
    parser = worker.parser()
    parser.add_argument("--threads", type=int, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    model = small()

    def translate(tokens, lengths):
        batch = Batch(
            src=tokens,
            src_length=lengths,
            src_prompt_mask=None,
            trg=None,
            trg_prompt_mask=None,
            indices=torch.arange(len(tokens)),
            device=torch.device("cpu"),
            pad_index=PAD,
            eos_index=EOS,
            is_train=False,
        )
        found, _, _ = search(
            model=model,
            batch=batch,
            beam_size=arguments.beam,
            beam_alpha=1.0,
            min_output_length=worker.STEPS,
            max_output_length=worker.STEPS,
        )
        return found

    def prepare(texts, ids):
        requests = []
        for rows in worker.batches(ids, arguments.size):
            rows = [[*(RENAMED.get(token, token) for token in row), EOS] for row in rows]
            lengths = torch.tensor([len(row) for row in rows])
            requests.append((torch.tensor(worker.padded(rows, PAD)), lengths))

        def decode():
            return [translate(*request) for request in requests]

        def lengths(answer):
            return [int((row != EOS).sum()) for rows in answer for row in rows]

        return decode, lengths

    worker.serve_decoding(prepare, "joeynmt", "torch")


def small():
    """JoeyNMT model with the shape of `transformer-small`."""
    names = {"unk": UNK, "pad": PAD, "bos": BOS, "eos": EOS}
    special = SimpleNamespace(
        **{f"{name}_token": f"<{name}>" for name in names},
        **{f"{name}_id": number for name, number in names.items()},
        sep_token=None,
        sep_id=None,
        lang_tags=[],
    )
    vocabulary = Vocabulary([f"w{i}" for i in range(4, worker.VOCABULARY)], special)
    return build_model(joeynmt_shapes.transformer(0.0), vocabulary, vocabulary).eval()


if __name__ == "__main__":
    main()
