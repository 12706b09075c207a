"""Functions that do not support the torch backend raise an error that names torch."""

import keras
import numpy as np
import pytest

from keras_seq.models import TransformerLanguageModel
from keras_seq.run.models import build_model
from keras_seq.search import beam_search, sample
from keras_seq.settings import load_settings
from keras_seq.text import InputError

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(keras.backend.backend() != "torch", reason="of torch"),
]


@pytest.mark.parametrize("search", [beam_search, sample])
def test_search_is_refused(search):
    model = TransformerLanguageModel(20, num_layers=1, units=8, feedforward_units=8, num_heads=2)
    with pytest.raises(NotImplementedError, match="run on TensorFlow and JAX, received.*'torch'"):
        search(model, np.array([[4, 5]], "int32"))


def test_the_model_of_a_run_is_refused():
    with pytest.raises(InputError, match="^KERAS_BACKEND=torch: training and decoding run on Ten"):
        build_model(load_settings(), 20, 20)
