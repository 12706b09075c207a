"""The penalty of the tag O with which a tagger finds as many names as it should."""

from __future__ import annotations

from collections.abc import Sequence

from keras_seq.inference.tagger import Tagger
from keras_seq.scoring import entity_scores

# The penalties that are tried. At the largest, a name of 1 % is preferred.
PENALTIES = (-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5)


def fit_outside_penalty(
    tagger: Tagger, texts: Sequence[str], references: Sequence[Sequence[str]]
) -> tuple[float, list[list[str]]]:
    """Returns the penalty of the tag O with the highest F1 of entities, and its tags.

    A tagger that is trained to give each word its most likely tag finds too few names, if names
    are rare: it leaves out a name with a probability below one half. The F1 of entities is highest
    at a lower bound. As the threshold of a classifier, the bound is fitted on other texts than
    those of the training. It is the best of `PENALTIES`, of equally good ones the nearest to 0.

    Args:
        tagger: A tagger.
        texts: The validation texts.
        references: The tags of each word of each text.

    Reference:
        Lipton, Elkan and Narayanaswamy, "Optimal Thresholding of Classifiers to Maximize F1
        Measure", 2014, https://arxiv.org/abs/1402.1892
    """
    best, most, answers = 0.0, -1.0, [[""]]
    tagged = tagger.tag_with(texts, PENALTIES)
    for penalty, results in sorted(zip(PENALTIES, tagged, strict=True), key=lambda p: abs(p[0])):
        tags = [list(result.tags) for result in results]
        found = entity_scores(references, tags).f1
        if found > most:
            best, most, answers = penalty, found, tags
    return best, answers
