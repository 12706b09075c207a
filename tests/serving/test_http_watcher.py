"""Newer versions replace older ones without failed requests."""

import asyncio
import shutil

import numpy as np
import pytest
from http_serving import SLOW_SECONDS, save_text_model

from keras_seq.serving.http.batching import Batcher
from keras_seq.serving.http.watcher import ModelWatcher
from keras_seq.text import InputError


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Versions 1 to 3 of a model, whose outputs begin with different prefixes."""
    base = tmp_path_factory.mktemp("models")
    return {n: save_text_model(base, n, f"{n} ") for n in (1, 2, 3)}


@pytest.fixture
def notices():
    return []


@pytest.fixture
def base(tmp_path, models):
    (tmp_path / "base").mkdir()
    shutil.copytree(models[1], tmp_path / "base" / "1")
    return tmp_path / "base"


@pytest.fixture
def watcher(base, notices):
    watcher = ModelWatcher(base, notices.append, trust=True)
    watcher.start(1, base / "1")
    yield watcher
    watcher.close()


def publish(models, base, version):
    """Publishes as an export does: writes a temporary directory and renames it."""
    shutil.copytree(models[version], base / f".tmp-{version}")
    (base / f".tmp-{version}").rename(base / str(version))


def answer(watcher):
    inputs = {"text": np.array([b"a"], object)}
    return watcher.current.run("serving_default", inputs)["translation"].tolist()


def states(watcher):
    return {version: state.state for version, state in watcher.states.items()}


def test_a_newer_version_is_served_and_the_old_one_ends(watcher, models, base, notices):
    async def run():
        await watcher.check()
        assert answer(watcher) == [b"1 A"] and states(watcher) == {1: "AVAILABLE"}
        shutil.copytree(models[3], base / ".tmp-3")
        await watcher.check()
        assert answer(watcher) == [b"1 A"] and notices == []
        publish(models, base, 2)
        await watcher.check()
        assert answer(watcher) == [b"2 A"]
        assert list(states(watcher).items()) == [(2, "AVAILABLE"), (1, "END")]
        (base / ".tmp-3").rename(base / "3")
        await watcher.check()
        await watcher.check()
        assert answer(watcher) == [b"3 A"]
        assert states(watcher) == {3: "AVAILABLE", 2: "END", 1: "END"}
        assert notices == ["version 2 is served now", "version 3 is served now"]

    asyncio.run(run())


def test_old_version_finishes_its_pending_requests(watcher, models, base):
    async def run():
        batcher = Batcher(batch_size=8, delay=0.0, queue_size=100, threads=1)
        old = watcher.current
        inputs = {"text": np.array([b"a"], object)}
        running = asyncio.ensure_future(batcher.run(old, "slow", inputs))
        waiting = asyncio.ensure_future(batcher.run(old, "serving_default", inputs))
        await asyncio.sleep(SLOW_SECONDS / 10)
        publish(models, base, 2)
        await watcher.check()
        if not running.done():
            assert states(watcher) == {2: "AVAILABLE", 1: "UNLOADING"}
        assert (await running)["translation"].tolist() == [b"1 A"]
        assert (await waiting)["translation"].tolist() == [b"1 A"]
        new = await batcher.run(watcher.current, "serving_default", inputs)
        assert new["translation"].tolist() == [b"2 A"]
        await batcher.close()
        assert old.closed and states(watcher) == {2: "AVAILABLE", 1: "END"}

    asyncio.run(run())


@pytest.mark.slow
def test_broken_version_is_skipped_until_it_is_complete(watcher, models, base, notices):
    async def run():
        (base / "5").mkdir()
        await watcher.check()
        await watcher.check()
        assert notices == [
            f"version 5 skipped: {base}/5: not a SavedModel: it has no saved_model.pb"
        ]
        # A manual copy is not atomic: the graph arrives first, then the variables.
        shutil.copy(models[2] / "saved_model.pb", base / "5")
        await watcher.check()
        assert len(notices) == 2 and "not a SavedModel that can be served" in notices[1]
        assert states(watcher) == {5: "END", 1: "AVAILABLE"}
        assert watcher.states[5].error
        assert answer(watcher) == [b"1 A"]
        publish(models, base, 3)
        await watcher.check()
        assert answer(watcher) == [b"3 A"]
        shutil.copytree(models[2] / "variables", base / "5" / "variables")
        await watcher.check()
        assert answer(watcher) == [b"2 A"] and watcher.current.version == 5
        assert states(watcher) == {5: "AVAILABLE", 3: "END", 1: "END"}

    asyncio.run(run())


@pytest.mark.slow
def test_deleting_the_newest_version_falls_back_and_the_last_stays_served(
    watcher, models, base, notices
):
    async def run():
        publish(models, base, 2)
        await watcher.check()
        shutil.rmtree(base / "2")
        await watcher.check()
        assert answer(watcher) == [b"1 A"] and states(watcher) == {2: "END", 1: "AVAILABLE"}
        shutil.rmtree(base / "1")
        await watcher.check()
        assert answer(watcher) == [b"1 A"]
        said = len(notices)
        shutil.rmtree(base)
        watching = asyncio.ensure_future(watcher.watch(0.01))
        await asyncio.sleep(0.2)
        assert notices[said:] == [f"{base}: no such file or directory"]
        assert answer(watcher) == [b"1 A"]
        publish_late = base.parent / "late"
        shutil.copytree(models[3], publish_late / "3")
        publish_late.rename(base)
        for _ in range(500):
            await asyncio.sleep(0.01)
            if watcher.current.version == 3:
                break
        watching.cancel()
        assert answer(watcher) == [b"3 A"]

    asyncio.run(run())


def test_start_with_a_damaged_model_raises_input_error(base, notices):
    (base / "1" / "saved_model.pb").write_bytes(b"")
    with pytest.raises(InputError, match=r"base/1: not a SavedModel that can be served"):
        ModelWatcher(base, notices.append, trust=True).start(1, base / "1")
    with pytest.raises(RuntimeError, match="call start"):
        _ = ModelWatcher(base, notices.append, trust=True).current
