"""Compares the speed of MultiHeadSelfAttention with that of keras.layers.MultiHeadAttention.

    python benchmarks/multi_head_attention.py --backend tensorflow
    python benchmarks/multi_head_attention.py --backend jax --shape 16x256 --mask padding

Measures compiled forward and backward passes, with gradients of the inputs and all weights, without
dropout. The two layers take turns in one process, so other load affects both equally. The ratio is
the median over turns of our time divided by Keras' time; below 1 our layer is faster.
"""

import argparse
import os
import statistics
import time

import machine

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
SHAPES = ("128x32", "16x256", "2x2048")
MASKS = ("none", "padding", "causal", "both")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backend", choices=["tensorflow", "jax"], default="tensorflow")
    parser.add_argument("--shape", action="append", metavar="BATCHxSTEPS", help="may be repeated")
    parser.add_argument("--mask", action="append", choices=MASKS, help="may be repeated")
    parser.add_argument("--features", type=int, default=512)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--precision", default="float32", help="a dtype policy of Keras")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--calls", type=int, default=3, help="calls of each layer in a turn")
    arguments = parser.parse_args()
    os.environ["KERAS_BACKEND"] = arguments.backend

    import keras

    keras.config.set_dtype_policy(arguments.precision)
    print(machine.describe())
    print(
        f"backend {arguments.backend}, {arguments.precision}, {arguments.features} features, "
        f"{arguments.heads} heads; milliseconds, the median of {arguments.turns} turns"
    )
    print("batch x steps  mask       ours   Keras'   ratio  (a quarter of the turns below, above)")
    for shape in arguments.shape or SHAPES:
        batch, steps = map(int, shape.split("x"))
        for mask in arguments.mask or MASKS:
            ours, theirs = layers(
                batch, steps, arguments.features, arguments.heads, mask, arguments.backend
            )
            measured = []
            for _ in range(arguments.turns):
                measured.append([seconds(call, arguments.calls) for call in (ours, theirs)])
            ratios = [one / other for one, other in measured]
            low, middle, high = statistics.quantiles(ratios, n=4)
            one, other = (
                statistics.median(column) * 1000 for column in zip(*measured, strict=True)
            )
            print(
                f"{batch:>5} x {steps:<5}  {mask:<8} {one:6.1f}   {other:6.1f}   {middle:5.3f}  "
                f"({low:.3f}, {high:.3f})",
                flush=True,
            )


def layers(batch, steps, features, heads, mask, backend):
    """Builds both layers and a function for each that runs its forward and backward pass."""
    import keras
    import numpy as np

    from keras_seq.layers import MultiHeadSelfAttention

    generator = np.random.default_rng(0)
    inputs = generator.normal(size=(batch, steps, features)).astype("float32")
    real = None
    if mask in ("padding", "both"):
        # Random lengths from half of the steps to all of them, like sentences of one batch.
        lengths = generator.integers(steps // 2, steps + 1, batch)
        real = np.arange(steps)[None] < lengths[:, None]
    causal = mask in ("causal", "both")
    ours = MultiHeadSelfAttention(heads, causal=causal)
    theirs = keras.layers.MultiHeadAttention(heads, features // heads)
    ours.build(inputs.shape)
    theirs.build(inputs.shape, inputs.shape)
    shown = None if real is None else real[:, None, :]
    return (
        compiled(ours, lambda x, real: ours(x, mask=real), inputs, real, backend),
        compiled(
            theirs,
            lambda x, shown: theirs(x, x, attention_mask=shown, use_causal_mask=causal),
            inputs,
            shown,
            backend,
        ),
    )


def compiled(layer, forward, inputs, mask, backend):
    """Builds a function that runs forward and backward and waits for the result."""
    import keras

    inputs = keras.ops.cast(inputs, layer.compute_dtype)
    given = [] if mask is None else [keras.ops.convert_to_tensor(mask)]

    def loss(inputs, *given):
        outputs = forward(inputs, *(given or [None]))
        return keras.ops.sum(keras.ops.square(keras.ops.cast(outputs, "float32")))

    if backend == "jax":
        import jax

        def of_weights(values, inputs, *given):
            with keras.StatelessScope(list(zip(layer.trainable_variables, values, strict=True))):
                return loss(inputs, *given)

        program = jax.jit(jax.grad(of_weights, argnums=(0, 1)))
        values = [variable.value for variable in layer.trainable_variables]
        call = lambda: jax.block_until_ready(program(values, inputs, *given))  # noqa: E731
    else:
        import tensorflow as tf

        @tf.function
        def program(inputs, *given):
            with tf.GradientTape() as tape:
                tape.watch(inputs)
                result = loss(inputs, *given)
            return tape.gradient(result, [*layer.trainable_weights, inputs])

        call = lambda: program(inputs, *given)[-1].numpy()  # noqa: E731
    for _ in range(2):
        call()
    return call


def seconds(call, calls):
    """Mean time of one call."""
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - begin) / calls


if __name__ == "__main__":
    main()
