"""Dynamic batching, tested with a numpy model whose outputs are known for each row."""

import asyncio
import itertools
import threading
import time

import numpy as np
import pytest

from keras_seq.serving.http.batching import Batcher
from keras_seq.serving.http.errors import RequestError


class Doubling:
    """Doubles values, rejects negative values, fails on 13; `widths` adds columns to each run."""

    def __init__(self, seconds=0.0, widths=None):
        self.seconds = seconds
        self.widths = widths
        self.batches = []
        self.at_once = self.most_at_once = self.held = 0
        self._lock = threading.Lock()

    def run(self, name, inputs):
        with self._lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            self.batches.append((name, inputs["x"].tolist()))
        time.sleep(self.seconds)
        with self._lock:
            self.at_once -= 1
        if np.any(inputs["x"] < 0):
            raise RequestError("negative")
        if np.any(inputs["x"] == 13):
            raise ZeroDivisionError("unlucky")
        y = inputs["x"] * 2
        if self.widths:
            y = np.concatenate([y[:, None], np.zeros((len(y), self.widths.pop()), y.dtype)], 1)
        return {"y": y, "text": np.array([str(value).encode() for value in inputs["x"]], object)}

    def hold(self):
        self.held += 1

    def release(self):
        self.held -= 1


def batcher(**options):
    return Batcher(**{"batch_size": 8, "delay": 0.02, "queue_size": 100, "threads": 1, **options})


def rows(*values):
    return {"x": np.array(values)}


async def doubled(batcher, model, values, name="f"):
    answer = await batcher.run(model, name, rows(*values))
    assert answer["text"].tolist() == [str(value).encode() for value in values]
    return answer["y"].tolist()


def test_requests_share_batches_and_keep_their_rows():
    async def run():
        model, shared = Doubling(0.002), batcher(queue_size=1000)
        numbers = iter(range(14, 1000))
        requests = [list(itertools.islice(numbers, n % 5 + 1)) for n in range(60)]
        answers = await asyncio.gather(*(doubled(shared, model, values) for values in requests))
        assert answers == [[2 * value for value in values] for values in requests]
        batches = [values for _, values in model.batches]
        assert max(map(len, batches)) == 8 and len(batches) < len(requests)
        # Rows run in the order of arrival; batches are padded with copies of their last row.
        assert list(dict.fromkeys(itertools.chain(*batches))) == list(itertools.chain(*requests))
        assert model.held == 0 and shared.waiting_rows == 0
        await shared.close()

    asyncio.run(run())


def test_a_large_request_is_split():
    async def run():
        model, shared = Doubling(), batcher()
        values = list(range(14, 51))
        assert await doubled(shared, model, values) == [2 * value for value in values]
        assert [batch for _, batch in model.batches] == [
            *(values[at : at + 8] for at in (0, 8, 16, 24)),
            [46, 47, 48, 49, 50, 50, 50, 50],
        ]
        await shared.close()

    asyncio.run(run())


def test_batches_are_padded_to_powers_of_two_or_the_limit():
    async def run():
        model, shared = Doubling(), batcher(batch_size=20, delay=0.0)
        for count in range(1, 21):
            await doubled(shared, model, [1] * count)
        expected = [1, 2, *[4] * 2, *[8] * 4, *[16] * 8, *[20] * 4]
        assert [len(values) for _, values in model.batches] == expected
        await shared.close()

    asyncio.run(run())


def test_outputs_of_a_split_request_are_padded_to_equal_width_with_zeros():
    async def run():
        model, shared = Doubling(widths=[0, 3]), batcher(batch_size=2)
        answer = await shared.run(model, "f", rows(1, 2, 3))
        assert answer["y"].tolist() == [[2, 0, 0, 0], [4, 0, 0, 0], [6, 0, 0, 0]]
        await shared.close()

    asyncio.run(run())


def test_request_with_zero_rows_is_answered():
    async def run():
        model, shared = Doubling(), batcher()
        answer = await shared.run(model, "f", {"x": np.zeros(0, int)})
        assert answer["y"].shape == (0,)
        await shared.close()

    asyncio.run(run())


def test_a_batch_has_one_signature_one_shape_and_one_model():
    async def run():
        model, other, shared = Doubling(), Doubling(), batcher(delay=0.05)
        await asyncio.gather(
            doubled(shared, model, [1], "f"),
            doubled(shared, model, [2], "g"),
            doubled(shared, other, [3], "f"),
            doubled(shared, model, [4], "f"),
            shared.run(model, "f", {"x": np.array([[5, 6]])}),
            shared.run(model, "f", {"x": np.array([[7, 8]])}),
        )
        expected = [("f", [1, 4]), ("f", [[5, 6], [7, 8]]), ("g", [2])]
        assert sorted(model.batches, key=str) == sorted(expected, key=str)
        assert other.batches == [("f", [3])]
        await shared.close()

    asyncio.run(run())


def test_a_full_batch_does_not_wait_and_a_lone_row_does():
    async def run():
        model, shared = Doubling(), batcher(delay=0.2)
        start = time.perf_counter()
        await doubled(shared, model, [1] * 8)
        assert time.perf_counter() - start < 0.1
        # A full batch runs before an older row whose delay has not passed yet.
        lone = asyncio.ensure_future(doubled(shared, model, [2], "g"))
        await asyncio.sleep(0)
        start = time.perf_counter()
        await doubled(shared, model, [1] * 8)
        assert time.perf_counter() - start < 0.1 and not lone.done()
        await lone
        assert 0.15 < time.perf_counter() - start < 0.6
        await shared.close()

    asyncio.run(run())


def test_the_queue_is_bounded_in_rows():
    async def run():
        model, shared = Doubling(0.05), batcher(batch_size=2, queue_size=4, delay=0.0)
        running = [asyncio.ensure_future(doubled(shared, model, [1, 2]))]
        await asyncio.sleep(0.01)
        running += [asyncio.ensure_future(doubled(shared, model, [n])) for n in range(3)]
        await asyncio.sleep(0)
        assert shared.waiting_rows == 3
        with pytest.raises(RequestError, match="too many requests") as caught:
            await shared.run(model, "f", rows(1, 2))
        assert caught.value.code == 429
        assert 1 <= int(caught.value.headers["Retry-After"]) <= 60
        running.append(asyncio.ensure_future(doubled(shared, model, [9])))
        assert [await answer for answer in running] == [[2, 4], [0], [2], [4], [18]]
        with pytest.raises(RequestError, match="5 rows in one request, at most 4 are allowed"):
            await shared.run(model, "f", rows(1, 2, 3, 4, 5))
        assert await doubled(shared, model, [1, 2, 3, 4]) == [2, 4, 6, 8]
        await shared.close()

    asyncio.run(run())


def test_rejected_request_does_not_fail_others_in_its_batch():
    async def run():
        model, shared = Doubling(), batcher()
        answers = await asyncio.gather(
            doubled(shared, model, [1, 2]),
            doubled(shared, model, [3, -1]),
            doubled(shared, model, [4]),
            return_exceptions=True,
        )
        assert answers[0] == [2, 4] and answers[2] == [8]
        assert isinstance(answers[1], RequestError)
        # An internal error fails the whole batch, but not the next batch.
        answers = await asyncio.gather(
            doubled(shared, model, [13]), doubled(shared, model, [5]), return_exceptions=True
        )
        assert [type(answer) for answer in answers] == [ZeroDivisionError] * 2
        assert await doubled(shared, model, [6]) == [12]
        # If one part of a large request is rejected, its waiting rows are dropped.
        with pytest.raises(RequestError):
            await shared.run(model, "f", rows(-1, *range(14, 34)))
        assert await doubled(shared, model, [7]) == [14]
        assert model.held == 0 and shared.waiting_rows == 0
        await shared.close()

    asyncio.run(run())


def test_run_beyond_the_time_limit_is_not_repeated():
    class Endless(Doubling):
        """Is too slow for batches of `slow_rows` rows; rejects other batches of several rows."""

        slow_rows = 0

        def run(self, name, inputs):
            outputs = super().run(name, inputs)
            if len(inputs["x"]) == self.slow_rows:
                raise RequestError("too slow", 504)
            if len(inputs["x"]) > 1:
                raise RequestError("several rows")
            return outputs

    async def run(slow_rows):
        model, shared = Endless(), batcher()
        model.slow_rows = slow_rows
        requests = (doubled(shared, model, [value]) for value in range(4))
        answers = await asyncio.gather(*requests, return_exceptions=True)
        assert [answer.code for answer in answers] == [504] * 4
        assert model.held == 0 and shared.waiting_rows == 0
        await shared.close()
        return [values for _, values in model.batches]

    assert asyncio.run(run(4)) == [[0, 1, 2, 3]]
    assert asyncio.run(run(1)) == [[0, 1, 2, 3], [0]]


def test_waiting_rows_of_a_canceled_request_never_run():
    async def run():
        model, shared = Doubling(0.05), batcher(batch_size=2, delay=0.0)
        first = asyncio.ensure_future(doubled(shared, model, [1]))
        await asyncio.sleep(0.01)
        gone = asyncio.ensure_future(shared.run(model, "f", rows(*range(20, 30))))
        stays = asyncio.ensure_future(doubled(shared, model, [2]))
        await asyncio.sleep(0)
        assert shared.waiting_rows == 11
        gone.cancel()
        assert await asyncio.gather(first, stays) == [[2], [4]]
        assert [values for _, values in model.batches] == [[1], [2]]
        # Canceling a running request does not affect other requests.
        gone = asyncio.ensure_future(shared.run(model, "f", rows(3)))
        await asyncio.sleep(0.02)
        gone.cancel()
        await shared.close()
        assert model.held == 0 and shared.waiting_rows == 0

    asyncio.run(run())


def test_batches_run_concurrently_up_to_the_thread_count():
    async def run():
        for threads in (1, 3):
            model, shared = Doubling(0.03), batcher(threads=threads, batch_size=1)
            await asyncio.gather(*(doubled(shared, model, [n]) for n in range(9)))
            assert model.most_at_once == threads
            await shared.close()

    asyncio.run(run())


def test_observe_callback_receives_row_count_and_seconds():
    async def run():
        seen = []
        shared = batcher(observe=lambda count, seconds: seen.append((count, seconds)))
        await doubled(shared, Doubling(0.01), [1, 2, 3])
        assert seen[0][0] == 3 and 0.005 < seen[0][1] < 1
        await shared.close()

    asyncio.run(run())


def test_model_that_drops_rows_raises_request_error():
    class Mean(Doubling):
        def run(self, name, inputs):
            return {"y": inputs["x"].mean(keepdims=True)}

    async def run():
        shared = batcher()
        with pytest.raises(RequestError, match="does not return one row per row"):
            await shared.run(Mean(), "f", rows(1, 2))
        await shared.close()

    asyncio.run(run())
