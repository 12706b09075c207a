"""Optional training methods on two devices match the same training on one device."""

import pytest
from cluster.shared_training import (
    all_arrays,
    all_end,
    arguments,
    assert_near,
    before,
    number,
)
from faults.training_process import Training

pytestmark = pytest.mark.process

METHODS = {
    "training__guided_alignment": 1,
    "training__scheduled_sampling": "constant",
    "training__scheduled_sampling_rate": 1,
    "training__freeze": "encoder_block_0/attention",
    "training__word_dropout": 0.1,
    "training__clip_norm": 1,
    # Low enough that rounding errors do not change which word is the most likely.
    "training__learning_rate": 1e-4,
}
# Sets the weight of a row in the third update to NaN; the row belongs to the first device.
SPOIL = """
import keras_seq.training.setup as setup
def spoiling(make):
    def spoilt(stream, update, *arguments, **options):
        for inputs, targets, weights in make(stream, update, *arguments, **options):
            if update == 2:
                for part in weights.values():
                    part[0] = float("nan")
            yield inputs, targets, weights
    return spoilt
setup.fit_batches = spoiling(setup.fit_batches)
"""


@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
@pytest.mark.weekly
def test_all_training_methods_on_two_devices_match_one_device(folder, backend):
    """Combines alignments, sampled words, frozen weights, pair weights, clipping and a skip.

    A loss term with a wrong weight changes the moments even under clipping, and so does clipping
    the gradients before they are summed.
    """
    lines = range(len((folder / "train.tsv").read_text().splitlines()))
    (folder / "links").write_text("".join("0-4 1-3 2-2 3-1 4-0\n" for _ in lines))
    (folder / "weights").write_text("".join(f"{1 + n % 3}\n" for n in lines))
    files = {"data__alignments": folder / "links", "data__weights": folder / "weights"}
    runs = [folder / f"{backend}-methods-{count}" for count in (1, 2)]
    saying = all_end(
        Training(
            arguments(folder, run.name, f"--devices {count}", **METHODS, **files),
            before(backend, SPOIL),
        )
        for count, run in zip((1, 2), runs, strict=True)
    )
    assert "devices 2 (cpu)\n" in saying[1] and "devices " not in saying[0]
    assert_near(*runs, tolerance=1e-5)
    for run, said in zip(runs, saying, strict=True):
        assert "gradients are not finite; 1 updates skipped so far" in said
        arrays = all_arrays(run)
        assert (number(arrays, "skipped"), number(arrays, "iteration")) == (1, 5)
        assert not any("encoder_block_0_attention_qkv_kernel_momentum" in name for name in arrays)
        assert any("decoder_block_0_self_attention_qkv_kernel_momentum" in name for name in arrays)
