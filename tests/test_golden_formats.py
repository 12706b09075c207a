"""Stored exports, prepared text and vocabularies can still be loaded.

`golden/formats-1.tar.xz` has, as keras-seq 0.1.0 wrote them: four exports of the Transformer of
`golden/format-1.tar.xz`, the prepared text on which it was trained, and vocabularies of each kind.
"""

import keras
import pytest
from golden_archive import unpack

from keras_seq import models, runtime
from keras_seq.data import TokenCorpus
from keras_seq.run import Run
from keras_seq.settings import load_settings
from keras_seq.text import Labels, Tokenizer, tokenizer_from_bytes

# The recorded translations and their mean log-probabilities per token.
TRANSLATIONS = {"a": ("e f", -0.10489), "b": ("f e", -0.09384), "d": ("f f f", -0.09122)}
# The recorded ids of a line, and the line that the ids stand for.
LINES = {
    "unigram": "the man rides a dog",
    "bpe": "the man rides a dog",
    "char": "the man rides a dog",
    "word": "the man rides a dog",
    "byte": "the man rides a dog",
    "features": "a man\tV;PST",
    "wordpiece": "the man rides a horse",
}
IDS = {
    "unigram": [260, 273, 265, 261, 260, 264, 262, 260, 267, 272, 269, 261, 268, 263, 277],
    "bpe": [270, 265, 275, 269, 273, 260, 276, 282, 281, 289],
    "char": [
        *(271, 267, 262, 260, 268, 261, 264, 260, 269, 270),
        *(266, 262, 263, 260, 261, 260, 266, 265, 273),
    ],
    "word": [265, 263, 264, 261, 268],
    # The bytes of the text, after four special ids.
    "byte": [4 + byte for byte in b"the man rides a dog"],
    "features": [261, 260, 268, 261, 264, 276, 275],
    "wordpiece": [10, 5, 6, 7, 4, 8],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return unpack("formats-1.tar.xz", tmp_path_factory.mktemp("formats"))


@pytest.mark.parametrize("kind", LINES)
def test_vocabulary_of_format_1_encodes_as_recorded(folder, kind):
    content = (folder / "vocabularies" / f"{kind}.model").read_bytes()
    tokenizer = tokenizer_from_bytes(content)
    assert [list(ids) for ids in tokenizer.encode([LINES[kind]])] == [IDS[kind]]
    assert tokenizer.decode([IDS[kind]]) == [LINES[kind]]
    assert tokenizer.to_bytes() == content


def test_labels_of_format_1_keep_their_ids(folder):
    labels = Labels.from_bytes((folder / "vocabularies" / "labels.txt").read_bytes())
    assert labels.ids(["bad", "good", "other"]) == [4, 5, 1]


@pytest.mark.parametrize("part", ["train", "valid"])
def test_prepared_text_of_format_1_has_the_pairs_of_its_file(folder, part):
    prepared = folder / "prepared"
    corpus = TokenCorpus.open(prepared / "data" / part)
    sides = [
        Tokenizer.from_bytes((prepared / "tokenizer" / f"{side}.model").read_bytes())
        for side in ("source", "target")
    ]
    sources = sides[0].decode([corpus.source(i) for i in range(len(corpus))])
    targets = sides[1].decode([corpus.target(i) for i in range(len(corpus))])
    lines = (folder / f"{part}.tsv").read_text(encoding="utf-8").splitlines()
    pairs = [f"{source}\t{target}" for source, target in zip(sources, targets, strict=True)]
    # The training text is followed by pairs of joined lines.
    assert pairs[: len(lines)] == lines
    assert len(pairs) == len(lines) * (3 if part == "train" else 1)


def test_runtime_loads_a_stored_onnx_export(folder):
    check(runtime.load(folder / "onnx").run([*TRANSLATIONS]))


@pytest.mark.slow
def test_a_run_is_made_of_prepared_text_of_format_1(folder, tmp_path, monkeypatch):
    from training.toy import quiet_train

    monkeypatch.chdir(folder)
    settings = load_settings(
        overrides={
            "data.prepared": str(folder / "prepared"),
            "training.max_steps": 1,
            "model.units": 8,
            "model.num_heads": 1,
            "model.num_encoder_layers": 1,
            "model.num_decoder_layers": 1,
        },
    )
    quiet_train(settings, tmp_path / "run")
    assert Run.open(tmp_path / "run").checkpoints.steps == [1]


@pytest.mark.slow
def test_stored_saved_model_answers_as_recorded(folder):
    from keras_seq.serving import SavedModelTranslator

    check(SavedModelTranslator(folder / "saved" / "1").translate([*TRANSLATIONS]))


@pytest.mark.slow
def test_stored_litert_file_answers_as_recorded(folder):
    pytest.importorskip("ai_edge_litert")
    from keras_seq import litert

    # Its search is greedy.
    answers = litert.load(folder / "lite.tflite").run([*TRANSLATIONS])
    assert [best.text for best, *_ in answers] == [text for text, _ in TRANSLATIONS.values()]


@pytest.mark.slow
def test_stored_keras_file_loads(folder):
    model = keras.models.load_model(folder / "model.keras")
    assert isinstance(model, models.Transformer) and model.count_params() > 0


def check(answers):
    for (best, *_), (text, score) in zip(answers, TRANSLATIONS.values(), strict=True):
        assert best.text == text
        assert best.score == pytest.approx(score, abs=1e-3)
