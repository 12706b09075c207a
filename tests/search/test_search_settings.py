"""Search options agree in Python, settings and commands, and invalid values are rejected.

`tests/serving/test_search_everywhere.py` tests the options in `translate` and exports.
"""

import dataclasses
import inspect
import typing

import pytest

from keras_seq.search import SearchConfig, beam_search, sample
from keras_seq.serving.ctranslate2_translator import CTranslate2Translator
from keras_seq.settings import SearchSettings, SettingsError, load_settings
from keras_seq.text import InputError
from keras_seq_cli.search_options import OPTIONS

pytestmark = pytest.mark.jax

FIELDS = SearchSettings.model_fields
# Python takes tokens, because it has no vocabulary to tokenize texts with.
OTHERWISE_IN_PYTHON = {
    "method": ("beam_search", "sample"),
    "forbidden": ("forbidden_tokens", "forbidden_sequences"),
    "prefix": ("prefix",),
    "batch_size": ("source",),
}
# Only translations by a run are reranked.
OF_TRANSLATIONS = {"rerank", "candidates"}
DEFAULTS = {field.name: field.default for field in dataclasses.fields(SearchConfig)}


def test_commands_have_an_option_for_each_setting():
    assert list(OPTIONS) == list(FIELDS)
    for name, field in FIELDS.items():
        kinds = set(typing.get_args(field.annotation)) or {field.annotation}
        kind, said = OPTIONS[name]
        if typing.get_origin(field.annotation) is typing.Literal:
            assert kind is str
            assert all(choice in said for choice in kinds), name
        elif list[str] in kinds:
            assert kinds == {str, list[str], type(None)} and kind == list[str]
        else:
            assert kinds - {type(None)} == {kind}, name


def test_search_arguments_have_the_same_defaults_as_the_settings():
    shared = set(FIELDS) & set(DEFAULTS)
    assert {name: FIELDS[name].default for name in shared} == {
        name: DEFAULTS[name] for name in shared
    }


def test_every_search_setting_has_a_python_argument():
    assert set(FIELDS) - set(DEFAULTS) == set(OTHERWISE_IN_PYTHON) | OF_TRANSLATIONS
    found = {"beam_search", "sample", *DEFAULTS}
    for search in (beam_search, sample):
        found |= set(inspect.signature(search).parameters)
    assert {name for names in OTHERWISE_IN_PYTHON.values() for name in names} <= found


@pytest.mark.parametrize("search", [beam_search, sample])
def test_unknown_search_option_raises_type_error(search):
    with pytest.raises(TypeError, match="unexpected keyword argument 'beam_width'"):
        search(None, None, beam_width=4)
    with pytest.raises(TypeError, match="unexpected keyword argument 'beam_width'"):
        search(None, None, SearchConfig(), beam_width=4)


SAMPLING = {"method": "sampling"}
IMPOSSIBLE = [
    # Beam search.
    ({"n_best": 6}, "n_best: received 6, expected at most search.beam_size (5)"),
    ({"beam_size": 2, "n_best": 3}, "n_best: received 3, expected at most search.beam_size (2)"),
    ({"beam_size": 0}, "beam_size: received 0, expected an integer, at least 1"),
    ({"n_best": 0}, "n_best: received 0, expected an integer, at least 1"),
    ({"patience": 0}, "patience: received 0, expected a number, at least 0.001"),
    ({"coverage_penalty": -1}, "coverage_penalty: received -1, expected a number, at least 0"),
    # Sampling options with beam search.
    ({"temperature": 0.7}, "temperature: received 0.7, which is for sampling, and search.method"),
    ({"top_k": 3}, "top_k: received 3, which is for sampling, and search.method is beam"),
    ({"top_p": 0.9}, "top_p: received 0.9, which is for sampling, and search.method is beam"),
    ({"seed": 1}, "seed: received 1, which is for sampling, and search.method is beam"),
    # Beam search options with sampling.
    (SAMPLING | {"patience": 2.0}, "patience: received 2.0, which is for a beam, and search."),
    (SAMPLING | {"coverage_penalty": 0.1}, "coverage_penalty: received 0.1, which is for a beam"),
    # Sampling.
    (SAMPLING | {"temperature": 0}, "temperature: received 0, expected a number, at least 0.001"),
    (SAMPLING | {"top_p": 0}, "top_p: received 0, expected a number, above 0 and at most 1"),
    (SAMPLING | {"top_p": 1.01}, "top_p: received 1.01, expected a number, above 0 and at most 1"),
    (SAMPLING | {"top_k": -1}, "top_k: received -1, expected an integer, at least 0"),
    (SAMPLING | {"seed": -1}, "seed: received -1, expected an integer, at least 0"),
    (SAMPLING | {"seed": 2**32}, "seed: received 4294967296, expected an integer, at least 0 and"),
    ({"method": "greedy"}, "method: received 'greedy', expected 'beam' or 'sampling'"),
    # Lengths.
    ({"min_length": 257}, "min_length: received 257, expected at most search.max_length (256)"),
    ({"max_length": 3, "min_length": 4}, "expected at most search.max_length (3)"),
    (
        {"min_length_ratio": 2.5},
        "min_length_ratio: received 2.5, expected at most search.max_length_ratio (2.0)",
    ),
    ({"min_length": 0}, "min_length: received 0, expected an integer, at least 1"),
    ({"max_length_extra": 0}, "max_length_extra: received 0, expected an integer, at least 1"),
    ({"max_length_ratio": -1}, "max_length_ratio: received -1, expected a number, at least 0"),
    # Scores.
    ({"length_normalization": "mean"}, "received 'mean', expected 'average', 'gnmt' or 'none'"),
    ({"alpha": -0.5}, "alpha: received -0.5, expected a number, at least 0"),
    # Rules for the output.
    ({"no_repeat_ngram_size": -1}, "no_repeat_ngram_size: received -1, expected an integer"),
    ({"repetition_penalty": 0}, "repetition_penalty: received 0, expected a number, at least"),
    ({"no_repeat_ngram_size": 33}, "expected an integer, at least 0 and at most 32"),
    # Memory: 2^28 tokens of hypotheses in a batch.
    (
        {"beam_size": 1000, "batch_size": 1049},
        "batch_size: received 1,049, expected at most 1,048 with 1,000 hypotheses of "
        "search.max_length (256)",
    ),
    (
        SAMPLING | {"n_best": 100_000, "batch_size": 11},
        "batch_size: received 11, expected at most 10 with 100,000 hypotheses",
    ),
    ({"max_length": 10_001}, "received 10001, expected an integer, at least 1 and at most 10,000"),
    # Reranking.
    ({"rerank": "ter"}, "rerank: received 'ter', expected 'none', 'chrf', 'bleu' or 'exact'"),
    ({"candidates": 1}, "candidates: received 1, expected an integer, at least 2"),
    ({"rerank": "bleu", "n_best": 17}, "n_best: received 17, expected at most search.candidates"),
    ({"prefix": ""}, "prefix: received '', expected text"),
    ({"forbidden": []}, "forbidden: received a list, expected text or a list of texts"),
]


@pytest.mark.parametrize(("given", "said"), IMPOSSIBLE, ids=lambda value: str(value)[:60])
def test_impossible_search_setting_raises_a_one_line_settings_error(given, said):
    with pytest.raises(SettingsError) as error:
        load_settings(overrides={f"search.{name}": value for name, value in given.items()})
    assert str(error.value).startswith("search.")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "given",
    [
        given
        for given, said in IMPOSSIBLE
        if set(given) <= set(DEFAULTS) and "which is for" not in said
    ],
    ids=str,
)
def test_python_rejects_the_same_values_as_the_settings(given):
    with pytest.raises(ValueError, match=rf"^`({'|'.join(given)})` must be .*, received "):
        beam_search(None, None, **given)


def test_every_search_setting_has_a_rejected_value_case():
    assert {name for given, _ in IMPOSSIBLE for name in given} == set(FIELDS)


def test_sampling_allows_n_best_above_the_beam_size():
    search = load_settings(
        overrides={"search.method": "sampling", "search.n_best": 9, "search.beam_size": 5}
    ).search
    assert search.n_best == 9


@pytest.mark.parametrize(
    "given",
    [
        {"method": "sampling"},
        {"patience": 2.0},
        {"coverage_penalty": 0.5},
        {"min_length": 2},
        {"min_length_ratio": 0.5},
        {"no_repeat_ngram_size": 2},
        {"repetition_penalty": 1.2},
        {"forbidden": "word"},
        {"prefix": "word"},
        {"length_normalization": "gnmt"},
    ],
    ids=str,
)
def test_setting_unsupported_by_ctranslate2_raises_input_error(given):
    with pytest.raises(InputError, match=rf"^search\.{next(iter(given))}: .*use --engine tensorf"):
        CTranslate2Translator(None, None, None, SearchSettings(**given))
