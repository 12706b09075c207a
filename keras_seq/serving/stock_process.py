"""Script that runs a SavedModel in a separate process, in the same way as a model server.

The script reads JSON from stdin:

* `model`: the directory of the SavedModel;
* `text`: true if the server has the operations of tensorflow-text;
* `batches`: a list of batches. A batch maps input names of `serving_default` to a list of texts or
  of rows of numbers. Shorter rows are padded with 0.

The script loads the model into a session, because `tf.saved_model.load` also restores variables
that a session cannot restore. It prints JSON: `load_seconds`, and `outputs`, a list with the texts
or the ids of the best hypotheses of each batch.
"""

import json
import sys
import time

# Packages that TensorFlow and Keras import if they are installed, and that this script never uses.
# Without them it starts in 3 instead of 5 seconds.
_UNUSED = ("IPython", "PIL", "h5py", "jax", "matplotlib", "pandas", "scipy", "sklearn")


def main() -> None:
    sys.modules.update(dict.fromkeys(_UNUSED))  # type: ignore[arg-type]
    from tensorflow.compat import v1

    request = json.load(sys.stdin)
    if request["text"]:
        # Importing the package registers the operations.
        import tensorflow_text  # noqa: F401
    outputs = []
    with v1.Graph().as_default(), v1.Session() as session:
        start = time.perf_counter()
        signature = v1.saved_model.load(session, ["serve"], request["model"]).signature_def[
            "serving_default"
        ]
        seconds = time.perf_counter() - start
        for batch in request["batches"]:
            inputs = {signature.inputs[name].name: _array(rows) for name, rows in batch.items()}
            # At most one output is text; its name depends on the task.
            texts = [info for info in signature.outputs.values() if info.dtype == v1.string]
            if texts:
                (info,) = texts
                outputs.append(_decoded(session.run(info.name, inputs).tolist()))
            else:
                ids = session.run(signature.outputs["ids"].name, inputs)
                outputs.append(ids[:, 0].tolist())
    # Check only for `keras_seq`, because tensorflow-text may import Keras.
    if "keras_seq" in sys.modules:
        raise SystemExit("keras_seq was imported: the model does not stand alone")
    json.dump({"outputs": outputs, "load_seconds": seconds}, sys.stdout)


def _array(rows: list) -> list:
    if isinstance(rows[0], str):
        return [text.encode() for text in rows]
    if not isinstance(rows[0], list) or len({*map(len, rows)}) == 1:
        return rows
    width = max(map(len, rows))
    return [row + [type(row[0])(0) if row else 0] * (width - len(row)) for row in rows]


def _decoded(values: list) -> list:
    return [value.decode() if isinstance(value, bytes) else _decoded(value) for value in values]


if __name__ == "__main__":
    main()
