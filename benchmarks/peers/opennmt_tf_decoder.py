"""OpenNMT-tf's SavedModel, run in its own environment: pieces in, pieces out.

`--export` writes a model with new weights. Two concurrent calls crash TensorFlow 2.12 with a
segmentation fault, so several cores need several processes.
"""

import os
import pathlib
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf
import worker


def main() -> None:
    parser = worker.parser()
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--export", action="store_true")
    arguments = parser.parse_args()
    if arguments.export:
        export(arguments.directory, arguments.beam)
        return
    # Keep a reference to the model, because its signature does not.
    model = tf.saved_model.load(str(arguments.directory))
    signature = model.signatures["serving_default"]

    def translate(words, lengths):
        answer = signature(tokens=words, length=lengths)
        return answer["tokens"].numpy(), answer["length"].numpy()

    def prepare(texts, ids):
        requests = []
        for rows in worker.batches(ids, arguments.size):
            words = worker.padded([[f"w{token}" for token in row] for row in rows], "")
            lengths = [len(row) for row in rows]
            requests.append((tf.constant(words), tf.constant(lengths, tf.int32)))

        def decode():
            return [translate(*request) for request in requests]

        def lengths(answer):
            return [int(length) for _, found in answer for length in found[:, 0]]

        return decode, lengths

    worker.serve_decoding(prepare, "OpenNMT-tf", "tensorflow")


def export(directory: pathlib.Path, beam: int) -> None:
    import opennmt

    with tempfile.TemporaryDirectory() as folder:
        words = os.path.join(folder, "words.txt")
        with open(words, "w") as stream:
            stream.writelines(f"{word}\n" for word in ("<blank>", "<s>", "</s>"))
            # OpenNMT-tf adds one entry for unknown words.
            stream.writelines(f"w{i}\n" for i in range(worker.VOCABULARY - 4))
        model = opennmt.models.Transformer(
            opennmt.inputters.WordEmbedder(embedding_size=256),
            opennmt.inputters.WordEmbedder(embedding_size=256),
            num_layers=3,
            num_units=256,
            num_heads=4,
            ffn_inner_dim=1024,
            share_embeddings=opennmt.models.EmbeddingsSharingLevel.ALL,
        )
        model.initialize(
            {"source_vocabulary": words, "target_vocabulary": words},
            params={
                "beam_width": beam,
                "length_penalty": 1.0,
                "maximum_decoding_length": worker.STEPS,
                "minimum_decoding_length": worker.STEPS,
            },
        )
        model.create_variables()
        model.export(str(directory))


if __name__ == "__main__":
    main()
