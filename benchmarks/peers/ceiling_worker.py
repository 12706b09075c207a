"""Measures floating-point operations per second of TensorFlow's matrix product."""

import argparse
import math
import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf
import worker


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", action="append", required=True, metavar="MxKxN")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each of the products")
    arguments = parser.parse_args()
    product = tf.function(tf.matmul, jit_compile=False)

    def rate(size, dtype):
        """Operations per second at the median time of a product."""
        rows, inner, columns = map(int, size.split("x"))
        left, right = (
            tf.cast(tf.random.normal(shape), dtype) for shape in ((rows, inner), (inner, columns))
        )
        product(left, right).numpy()
        seconds, start = [], time.perf_counter()
        while time.perf_counter() - start < arguments.seconds or len(seconds) < 3:
            begin = time.perf_counter()
            product(left, right)
            seconds.append(time.perf_counter() - begin)
        return 2 * math.prod((rows, inner, columns)) / statistics.median(seconds)

    def respond(request):
        found, figures = worker.timed(
            lambda: {
                dtype: {size: rate(size, dtype) for size in arguments.size}
                for dtype in ("float32", "bfloat16")
            }
        )
        return figures | found

    worker.serve(respond, "tensorflow")


if __name__ == "__main__":
    main()
