"""keras-seq's `Translator`: text in, text out.

`Translator` makes the batches itself. With batch size 1 it is called once per sentence, as in an
application that waits for each translation.
"""

import os

import worker

from keras_seq import Translator


def main() -> None:
    parser = worker.parser()
    parser.add_argument("run")
    arguments = parser.parse_args()
    translator = Translator.load(arguments.run, beam_size=arguments.beam, batch_size=arguments.size)

    def prepare(texts, ids):
        calls = [texts] if arguments.size > 1 else [[text] for text in texts]

        def decode():
            return [found for lines in calls for found in translator.translate(lines)]

        def lengths(answer):
            return [len(found[0].tokens) for found in answer]

        return decode, lengths

    worker.serve_decoding(prepare, "keras-seq", os.environ.get("KERAS_BACKEND", "tensorflow"))


if __name__ == "__main__":
    main()
