"""Language models: training, packing, resuming and generation."""

import json
import math
import random
from collections import Counter

import numpy as np
import pytest
from training.toy import assert_equal_tensors, killed_after, tensors_of
from weekly import weekly_but

import keras_seq
from keras_seq.data import TokenCorpus
from keras_seq.preparation import prepare_run
from keras_seq.run import Run
from keras_seq.settings import SettingsError, load_settings
from keras_seq.text import InputError
from keras_seq.training import plan, train

LETTERS = "abcdefgh"


def mirrored(count, seed):
    """Returns lines of three random letters and their mirror image, which is predictable."""
    generator = random.Random(seed)
    lines = []
    for _ in range(count):
        half = [generator.choice(LETTERS) for _ in range(3)]
        lines.append(" ".join(half + half[::-1]))
    return lines


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    for name, count, seed in (("train", 400, 1), ("valid", 60, 2)):
        (folder / name).write_text("".join(f"{line}\n" for line in mirrored(count, seed)))
    return folder


def small(text, **overrides):
    return load_settings(
        preset="lm-gru",
        overrides={
            "data.text": str(text / "train"),
            "data.valid_text": str(text / "valid"),
            "model.embedding_units": 16,
            "model.units": 48,
            "model.dropout": 0.0,
            "training.batch_tokens": 500,
            "training.schedule": "constant",
            "training.learning_rate": 0.01,
            "training.ema": 0.0,
            "training.max_steps": 4,
            "training.sample_count": 2,
            "search.max_length": 10,
        }
        | {key.replace("__", "."): value for key, value in overrides.items()},
    )


@pytest.fixture(scope="module")
def learned(text, tmp_path_factory):
    settings = small(text, training__max_steps=240, training__validate_every=120)
    said = []
    result = train(settings, tmp_path_factory.mktemp("runs") / "learned", notice=said.append)
    return result, said


def bigram_perplexity(lines, given):
    """Returns the perplexity of `given` under the best bigram model of `lines`."""
    pairs, firsts = Counter(), Counter()
    for line in lines:
        letters = ["", *line.split(), "."]
        pairs.update(zip(letters, letters[1:], strict=False))
        firsts.update(letters[:-1])
    total = tokens = 0
    for line in given:
        letters = ["", *line.split(), "."]
        for pair in zip(letters, letters[1:], strict=False):
            total -= math.log(pairs[pair] / firsts[pair[0]])
            tokens += 1
    return math.exp(total / tokens)


def test_language_model_beats_the_best_bigram_perplexity(learned):
    result, said = learned
    lines = mirrored(60, 2)
    assert result.metric == "perplexity"
    # Three of seven tokens are random, one of eight letters each; the other four are certain.
    least = 8 ** (3 / 7)
    assert least - 0.2 < result.best < 1.4 * least < 0.8 * bigram_perplexity(lines, lines)
    assert any(line.startswith("validation at step 240") and "perplexity" in line for line in said)


def test_generator_continues_prompts_and_samples_by_seed(learned):
    result, _ = learned
    generator = keras_seq.Generator.load(result.path, method="beam", beam_size=2)
    prompts = ["a b c", "h a d", "f e b"]
    texts = generator(prompts)
    assert all(text.startswith(prompt) for text, prompt in zip(texts, prompts, strict=True))
    # The second half begins with the last letter of the prompt.
    assert sum(text[6:7] == prompt[-1] for text, prompt in zip(texts, prompts, strict=True)) >= 2
    drawn = keras_seq.Generator.load(result.path, n_best=3, seed=5)
    alone, together = drawn.generate([""]), drawn.generate(["a b", "", "c"])
    assert [found.text for found in alone[0]] == [found.text for found in together[1]]
    assert len({found.text for found in alone[0]}) > 1
    others = keras_seq.Generator.load(result.path, n_best=3, seed=6).generate([""])
    assert [found.text for found in others[0]] != [found.text for found in alone[0]]


def test_validation_perplexity_equals_that_of_forced_decoding(learned):
    result, _ = learned
    lines = mirrored(60, 2)
    scorer = keras_seq.LikelihoodScorer.load(result.path)
    from keras_seq.inference.likelihood import perplexity

    assert perplexity(scorer([""] * 60, lines)) == pytest.approx(result.best, rel=1e-3)


def test_language_model_run_reports_its_task_and_perplexity(learned):
    result, _ = learned
    run = Run.open(result.path)
    card = (run.path / "README.md").read_text("utf-8")
    assert f"| validation perplexity | {result.best:.2f} |" in card
    assert f"keras-seq generate {result.path}" in card and "BLEU" not in card
    metrics = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    validations = [entry for entry in metrics if entry["kind"] == "validation"]
    assert min(entry["perplexity"] for entry in validations) == pytest.approx(result.best, rel=1e-4)
    page = keras_seq.report(run.path)
    assert "bits per character" in page and "Texts that the model generates" in page
    message = "task 'language-model', expected 'translate': use `keras-seq generate`"
    with pytest.raises(InputError, match=message):
        keras_seq.Translator.load(run.path)


@pytest.mark.slow
@pytest.mark.parametrize("packed", weekly_but([False, True], True))
def test_resumed_language_model_training_ends_with_the_same_weights(text, tmp_path, packed):
    settings = small(
        text,
        data__packed=packed,
        data__max_target_length=20,
        model__dropout=0.2,
        training__checkpoint_every=2,
        training__validate_every=2,
    )
    straight = tmp_path / "straight"
    train(settings, straight, notice=[].append)
    again = killed_after(2, straight, tmp_path / "again")
    train(settings, again, notice=[].append)
    assert_equal_tensors(tensors_of(straight, 4), tensors_of(again, 4))


def stream_of(corpus):
    assert corpus.is_packed and set(corpus.target_lengths[:-1]) == {20}
    return [int(token) for i in range(len(corpus)) for token in corpus.target(i)]


def joined(rows):
    """Returns the ids of lines with an end and a begin token between two lines."""
    return [token for row in rows for token in (2, *row, 3)][1:]


def test_packed_corpora_contain_the_complete_texts(text, tmp_path):
    """Empty lines are part of the text."""
    lines = {"train": mirrored(400, 1), "valid": mirrored(60, 2)}
    for name, part in lines.items():
        part[20:20] = ["", ""]
        (tmp_path / name).write_text("".join(f"{line}\n" for line in part))
    settings = small(tmp_path, data__packed=True, data__max_target_length=20)
    run = prepare_run(settings, tmp_path / "run", notice=[].append)
    for directory, name in ((run.train_directory, "train"), (run.valid_directory, "valid")):
        rows = run.target_tokenizer.encode(lines[name])
        assert stream_of(TokenCorpus.open(directory)) == joined(rows)


def test_the_end_of_a_packed_text_is_held_out(text, tmp_path):
    settings = small(text, data__packed=True, data__max_target_length=20, data__valid_text=None)
    notices = []
    run = prepare_run(settings, tmp_path / "run", notice=notices.append)
    assert "no validation files: the last 20 lines are held out" in notices
    rows = run.target_tokenizer.encode((text / "train").read_text().splitlines())
    assert stream_of(TokenCorpus.open(run.train_directory)) == joined(rows[:-20])
    assert stream_of(TokenCorpus.open(run.valid_directory)) == joined(rows[-20:])


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (
            {"task": "translate"},
            "model.family: received 'lm-rnn', expected 'transformer', 'rnn' or 'transformer-hub'",
        ),
        ({"data.pairs": "x"}, "data.pairs: received 'x', which is for task 'translate'"),
        ({"tokenizer.joint": False}, "tokenizer.joint: there is no source"),
        ({"training.guided_alignment": 0.1}, "there is no source with task 'language-model'"),
        ({"data.packed": True, "training.subword_alpha": 0.1}, "expected 0 with data.packed"),
        (
            {"data.packed": True, "data.weights": "w"},
            "data.weights: expected none with data.packed",
        ),
        ({"model.num_heads": 2}, "model.num_heads: not a setting of model.family 'lm-rnn'"),
    ],
)
def test_language_model_settings_reject_unsuitable_values(overrides, words):
    with pytest.raises(SettingsError, match=words.replace("'", "['\"]")):
        load_settings(preset="lm-gru", overrides={"data.text": "text", **overrides})


def test_data_text_and_language_model_task_require_each_other(text):
    with pytest.raises(SettingsError, match="data.text: .* which is for task 'language-model"):
        load_settings(overrides={"data.text": str(text / "train")})
    with pytest.raises(InputError, match="no text to train on: .*--task language-model and --text"):
        from keras_seq.preparation import count_pairs

        count_pairs(load_settings(preset="lm-gru").data)


@pytest.mark.parametrize("packed", [False, True])
def test_a_dry_run_shows_lines_without_a_source(text, tmp_path, packed):
    settings = small(text, data__packed=packed, data__max_target_length=20)
    said = plan(prepare_run(settings, tmp_path / "run", notice=[].append))
    lines = (text / "train").read_text().splitlines()
    shown = [line.removeprefix("  text             ") for line in said.splitlines()[-3:]]
    assert all((line in lines) is not packed for line in shown)
    assert "source" not in said.split("first batch")[1]


def test_text_prepared_by_workers_is_identical_and_requires_its_task(
    text, tmp_path, keras_seq_command
):
    where = tmp_path / "prepared"
    arguments = ["--task", "language-model", "--text", text / "train", "--preset", "lm-gru"]
    outcome = keras_seq_command("prepare", where, *arguments, "--workers", "2")
    assert outcome.code == 0, outcome.err
    assert f"keras-seq train RUN --task language-model --prepared {where}" in outcome.err
    here = prepare_run(small(text, data__valid_text=None), tmp_path / "here", notice=[].append)
    corpora = [TokenCorpus.open(run.train_directory) for run in (here, Run.open(where))]
    assert len(corpora[0]) == len(corpora[1])
    for i in range(len(corpora[0])):
        np.testing.assert_array_equal(corpora[0].target(i), corpora[1].target(i))
    outcome = keras_seq_command("train", tmp_path / "run", "--prepared", where)
    assert outcome.code == 2
    assert "which was prepared for 'language-model': give --task language-model" in outcome.error


def test_file_without_text_raises_input_error(tmp_path):
    (tmp_path / "blank").write_text("\n \n")
    settings = load_settings(preset="lm-gru", overrides={"data.text": str(tmp_path / "blank")})
    with pytest.raises(InputError, match=r"blank: no line has text \(2 lines\)"):
        prepare_run(settings, tmp_path / "run", notice=[].append)
