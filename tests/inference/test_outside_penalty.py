"""Taggers with a penalty for the tag O, against all tag sequences and their F1."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops
from label_runs import tagged_lines

import keras_seq
from keras_seq.inference.outside_penalty import PENALTIES, fit_outside_penalty
from keras_seq.inference.tagger import Tagger
from keras_seq.models import RecurrentTextEncoder, TextTagger
from keras_seq.run import Run
from keras_seq.scoring import entity_scores
from keras_seq.text import EOS_ID, Labels, Tokenizer

TAGS = ["B-LOC", "I-LOC", "O"]
TEXTS = ["ada lives here", "new york", "berlin", "we left new berlin today"]


def made(crf):
    keras.utils.set_random_seed(3)
    tokenizer = Tokenizer.train(TEXTS, size=290)
    encoder = RecurrentTextEncoder(tokenizer.vocabulary_size, embedding_units=8, units=8)
    model = TextTagger(encoder, len(TAGS), crf=crf)
    generator = np.random.default_rng(4)
    for weight in model.weights:
        if "seed_generator" not in weight.path:
            weight.assign(generator.normal(size=weight.shape))
    return model, tokenizer, Tagger(model, tokenizer, Labels(TAGS))


@pytest.mark.jax
@pytest.mark.parametrize("crf", [False, True])
def test_tags_with_a_penalty_are_the_best_of_all_sequences(crf):
    model, tokenizer, tagger = made(crf)
    found = tagger.tag_with(TEXTS, [0.0, 6.0])
    assert found[0] == tagger.tag(TEXTS) and found[0] != found[1]
    for penalty, results in zip([0.0, 6.0], found, strict=True):
        for text, result in zip(TEXTS, results, strict=True):
            words = text.split()
            ids = tokenizer.encode(words)
            begins = np.cumsum([0, *map(len, ids)])[:-1]
            source = np.array([[*itertools.chain(*ids), EOS_ID]])
            inputs = {"source": source, "begins": np.isin(np.arange(source.shape[1]), begins)[None]}
            logits = ops.convert_to_numpy(model(inputs)["logits"])[0, begins]
            logits[:, TAGS.index("O")] -= penalty

            def score(tags, logits=logits):
                total = sum(logits[step, tag] for step, tag in enumerate(tags))
                if model.field is not None:
                    start, end, matrix = map(
                        ops.convert_to_numpy,
                        (model.field.start, model.field.end, model.field.transitions),
                    )
                    total += start[tags[0]] + end[tags[-1]]
                    total += sum(matrix[pair] for pair in itertools.pairwise(tags))
                return total

            best = max(itertools.product(range(len(TAGS)), repeat=len(words)), key=score)
            assert result.tags == tuple(TAGS[tag] for tag in best)


def test_fitted_penalty_has_the_highest_f1_nearest_to_0():
    _, _, tagger = made(True)
    for wanted in (-1.0, 0.0, 2.0):
        references = [list(one.tags) for one in tagger.tag_with(TEXTS, [wanted])[0]]
        penalty, tags = fit_outside_penalty(tagger, TEXTS, references)
        scores = {
            other: entity_scores(
                references, [list(one.tags) for one in tagger.tag_with(TEXTS, [other])[0]]
            ).f1
            for other in PENALTIES
        }
        assert scores[penalty] == max(scores.values()) == 1
        assert all(scores[other] < 1 for other in PENALTIES if abs(other) < abs(penalty))
        assert tags == references


def test_trained_tagger_has_the_penalty_of_its_best_validation(tagger_run):
    run = Run.open(tagger_run)
    values = run.logs.validation_values("outside_penalty")
    assert set(values) == set(run.logs.validation_scores())
    tagger = keras_seq.Tagger.load(tagger_run)
    texts, tags = zip(*tagged_lines(30, seed=2), strict=True)  # the validation text
    penalty, _ = fit_outside_penalty(tagger, texts, [line.split() for line in tags])
    assert penalty in values.values()
    assert tagger(texts) == [" ".join(one.tags) for one in tagger.tag_with(texts, [penalty])[0]]
