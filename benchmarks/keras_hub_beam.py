"""Compares KerasHub's `BeamSampler` and `beam_search` on 100 random toy models.

    python -m pip install keras-hub tokenizers
    python benchmarks/keras_hub_beam.py

A toy model has a random next-token distribution for each step and previous token, also after the
end token. Each search returns its best target, cut at the first end token. The score is the
log-probability without length normalization, as in KerasHub. Exhaustive search gives the optimum.
"""

import argparse
import itertools
import os

import machine

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

START, END, WORDS = 2, 3, (4, 5, 6)
VOCABULARY = 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--beam-size", type=int, default=4)
    parser.add_argument("--limit", type=int, default=7, help="most tokens, with the end token")
    parser.add_argument("--scale", type=float, default=1.5, help="of the random logits")
    arguments = parser.parse_args()

    import keras
    import keras_hub
    import numpy as np
    from keras import ops

    from keras_seq.search import beam_search

    limit, size = arguments.limit, arguments.beam_size

    class Toy:
        """Model whose logits depend only on the step and the previous token."""

        def encoder(self, source, training=False):
            return {"mask": ops.not_equal(source, 0)}

        def initial_state(self, memory, beam_size, length):
            return {"beam": {}, "shared": {}}

        def decoder_step(self, inputs, training=False):
            row = ops.take(self.logits, inputs["position"], axis=0)
            return {"logits": ops.take(row, inputs["token"], axis=0), "state": inputs["state"]}

    toy = Toy()
    sampler = keras_hub.samplers.BeamSampler(num_beams=size)

    def next_logits(prompt, cache, index):
        last = ops.take(prompt, index - 1, axis=1)
        return ops.take(ops.take(toy.logits, index - 1, axis=0), last, axis=0), None, cache

    def theirs() -> tuple[int, ...]:
        prompt = ops.convert_to_tensor([[START] + [0] * limit], "int32")
        given = ops.convert_to_tensor([[True] + [False] * limit])
        found = sampler(next_logits, prompt, index=1, mask=given, stop_token_ids=[END])
        return tuple(ops.convert_to_numpy(found)[0, 1:].tolist())

    def ours() -> tuple[int, ...]:
        found = beam_search(
            toy,
            ops.convert_to_tensor([[4, 3]], "int32"),
            beam_size=size,
            length_normalization="none",
            max_length=limit,
        )
        return tuple(ops.convert_to_numpy(found.tokens)[0, 0].tolist())

    def cut(tokens: tuple[int, ...]) -> tuple[int, ...] | None:
        return tokens[: tokens.index(END) + 1] if END in tokens else None

    targets = [
        (*words, END)
        for length in range(limit)
        for words in itertools.product(WORDS, repeat=length)
    ]
    below: dict[str, int] = {"KerasHub's": 0, "ours": 0}
    without_end = dict.fromkeys(below, 0)
    against = {"worse than ours": 0, "better than ours": 0}
    for seed in range(arguments.models):
        drawn = arguments.scale * np.random.default_rng(seed).normal(
            size=(limit + 1, VOCABULARY, VOCABULARY)
        )
        drawn[..., [0, 1, START]] = -1e9
        toy.logits = ops.convert_to_tensor(drawn.astype("float32"))
        shares = drawn - np.log(np.exp(drawn).sum(axis=-1, keepdims=True))

        def score(target, shares=shares) -> float:
            pairs = itertools.pairwise((START, *target))
            return sum(shares[step, last, token] for step, (last, token) in enumerate(pairs))

        best = max(map(score, targets))
        scores = {}
        for name, search in (("KerasHub's", theirs), ("ours", ours)):
            target = cut(search())
            without_end[name] += target is None
            scores[name] = score(target) if target else float("-inf")
            below[name] += scores[name] < best - 1e-5
        against["worse than ours"] += scores["KerasHub's"] < scores["ours"] - 1e-5
        against["better than ours"] += scores["KerasHub's"] > scores["ours"] + 1e-5
    print(machine.describe())
    print(f"keras-hub {keras_hub.__version__}, backend {keras.backend.backend()}, beam {size}")
    for name, count in below.items():
        print(
            f"{name}: below the best of all {len(targets)} targets in {count} of "
            f"{arguments.models} models, without an end in {without_end[name]}"
        )
    print(", ".join(f"KerasHub's is {word} in {count}" for word, count in against.items()))


if __name__ == "__main__":
    main()
