"""CTranslate2 with a model of `keras-seq export --format ctranslate2`: pieces in and out."""

import json
import pathlib

import ctranslate2
import worker


def main() -> None:
    parser = worker.parser()
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--arithmetic", choices=["float32", "int8"], default="float32")
    parser.add_argument("--workers", type=int, default=1, help="of one thread each")
    arguments = parser.parse_args()
    translator = ctranslate2.Translator(
        str(arguments.directory),
        compute_type=arguments.arithmetic,
        inter_threads=arguments.workers,
        intra_threads=1,
    )
    pieces = json.loads((arguments.directory / "shared_vocabulary.json").read_text("utf-8"))

    def prepare(texts, ids):
        rows = [[pieces[token] for token in row] for row in ids]
        # CTranslate2 makes the batches itself; single sentences are one call each.
        calls = [rows] if arguments.size > 1 else [[row] for row in rows]

        def decode():
            return [
                result.hypotheses[0]
                for call in calls
                for result in translator.translate_batch(
                    call,
                    max_batch_size=arguments.size,
                    beam_size=arguments.beam,
                    length_penalty=1.0,
                    min_decoding_length=worker.STEPS,
                    max_decoding_length=worker.STEPS,
                    max_input_length=0,
                )
            ]

        return decode, lambda answer: [len(tokens) for tokens in answer]

    worker.serve_decoding(prepare, "ctranslate2")


if __name__ == "__main__":
    main()
