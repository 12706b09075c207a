"""Marian of transformers with new weights, run in its own environment: ids in, ids out."""

import marian
import torch
import worker


def main() -> None:
    parser = worker.parser()
    parser.add_argument("--threads", type=int, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    model = marian.small(dropout=0.0).eval()

    def translate(tokens, mask):
        return model.generate(
            input_ids=tokens,
            attention_mask=mask,
            do_sample=False,
            num_beams=arguments.beam,
            length_penalty=1.0,
            min_new_tokens=worker.STEPS,
            max_new_tokens=worker.STEPS,
        ).numpy()

    def prepare(texts, ids):
        requests = []
        for rows in worker.batches(ids, arguments.size):
            rows = [[*row, worker.EOS] for row in rows]
            masks = worker.padded([[1] * len(row) for row in rows], 0)
            requests.append((torch.tensor(worker.padded(rows, worker.PAD)), torch.tensor(masks)))

        def decode():
            with torch.inference_mode():
                return [translate(*request) for request in requests]

        def lengths(answer):
            # The first token is the start token.
            return [int((row[1:] != worker.EOS).sum()) for rows in answer for row in rows]

        return decode, lengths

    worker.serve_decoding(prepare, "transformers", "torch")


if __name__ == "__main__":
    main()
