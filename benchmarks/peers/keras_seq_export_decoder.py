"""keras-seq's SavedModel in TensorFlow's C API, as in a model server: text in, text out."""

import pathlib
import sys
from concurrent.futures import ThreadPoolExecutor

import worker

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))

from stock_server import StockSession, Tensor


def main() -> None:
    parser = worker.parser()
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--clients", type=int, default=1)
    arguments = parser.parse_args()
    session = StockSession(arguments.directory)
    clients = ThreadPoolExecutor(arguments.clients)

    def translate(texts):
        return session.run("serving_default", {"text": Tensor.row(texts)})

    def prepare(texts, ids):
        requests = worker.batches(texts, arguments.size)

        def decode():
            return list(clients.map(translate, requests))

        def lengths(answer):
            # Text does not have token lengths, so request them from the signature `ids`.
            found = []
            for rows in worker.batches(ids, 32):
                rows = worker.padded(rows, worker.PAD)
                tensor = Tensor((len(rows), len(rows[0])), [token for row in rows for token in row])
                found += session.run("ids", {"ids": tensor})["length"].values
            return found

        return decode, lengths

    worker.serve_decoding(prepare, "keras-seq", "tensorflow")


if __name__ == "__main__":
    main()
