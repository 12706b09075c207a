"""`SavedModelTranslator`, which uses TensorFlow's C library, equals the run in Keras."""

import threading

import keras
import numpy as np
import pytest
from weekly import SLOW_AND_WEEKLY

import keras_seq
from keras_seq.run import Run
from keras_seq.serving import SavedModelTranslator
from keras_seq.text.dates import date_pairs

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="only TensorFlow writes a SavedModel"
)

N_BEST = 2
STRANGE = [
    "",
    " ",
    "\t \u3000",
    "\u200b",
    "🐕" * 30,
    "a\0b",
    "\N{BYTE ORDER MARK}1.2.2003",
    "e\u0301 é",
    "<s> </s> <pad> <unk> <0x41>",
    "a lone \ud800 surrogate",
    "1.\u2028\u20292\x85\x0b\x0c3",
    "word " * 2000,
]
LINES = [source for source, _ in date_pairs(70, seed=5)] + STRANGE


@pytest.fixture(
    scope="module", params=["tiny_run", pytest.param("tiny_rnn_run", marks=SLOW_AND_WEEKLY)]
)
def pair(request, tmp_path_factory):
    """Translators of a run and of its export, for a Transformer and a recurrent model."""
    from keras_seq.serving import export_saved_model

    run = request.getfixturevalue(request.param)
    version = export_saved_model(
        Run.open(run), tmp_path_factory.mktemp("served"), n_best=N_BEST, verify=0
    )
    return keras_seq.Translator.load(run, n_best=N_BEST), SavedModelTranslator(version)


def test_saved_model_translator_equals_translator_of_the_run(pair):
    of_run, of_export = (translator.translate(LINES) for translator in pair)
    assert [[one.text for one in found] for found in of_export] == [
        [one.text for one in found] for found in of_run
    ]
    assert [[one.truncated for one in found] for found in of_export] == [
        [one.truncated for one in found] for found in of_run
    ]
    np.testing.assert_allclose(
        [one.score for found in of_export for one in found],
        [one.score for found in of_run for one in found],
        atol=1e-4,
    )
    assert max(map(len, of_export)) == N_BEST == pair[1].n_best
    assert any(one.truncated for found in of_export for one in found)


def test_neither_batches_nor_order_nor_threads_change_a_translation(pair):
    of_export = pair[1]
    expected = of_export(LINES)
    assert of_export(LINES[::-1]) == expected[::-1]
    assert [of_export([line])[0] for line in LINES[::9]] == expected[::9]
    found = [None] * 4
    threads = [
        threading.Thread(target=lambda i=i: found.__setitem__(i, of_export(LINES)))
        for i in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


@pytest.mark.slow
def test_batch_size_does_not_change_translations(tiny_export):
    expected = SavedModelTranslator(tiny_export / "1")(LINES)
    for size in (1, 7, 1000):
        assert SavedModelTranslator(tiny_export / "1", batch_size=size)(LINES) == expected


def test_empty_list_is_accepted_and_a_single_string_raises_type_error(tiny_export):
    translator = SavedModelTranslator(tiny_export / "1")
    assert translator([]) == []
    with pytest.raises(TypeError, match="one string"):
        translator("5 mai 1999")
