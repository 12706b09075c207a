"""Translations: tokens of our vocabularies for the peers, and text from their tokens."""

from __future__ import annotations

import pathlib

from tasks import PublicTask, read_lines


def write_tokens(
    task: PublicTask, data: pathlib.Path, run: pathlib.Path, work: pathlib.Path
) -> None:
    """Writes `{train,dev,test}.tsv` with the token ids of our run, and `{source,target}.words`."""
    from keras_seq.run import Run

    vocabularies = Run.open(run).vocabularies
    for part, file in zip(("train", "dev", "test"), task.files, strict=True):
        columns = [
            [" ".join(map(str, ids)) for ids in one.encode(read_lines(data, f"{file}.{language}"))]
            for one, language in zip(vocabularies, task.languages, strict=True)
        ]
        lines = [f"{a}\t{b}\n" for a, b in zip(*columns, strict=True)]
        (work / f"{part}.tsv").write_text("".join(lines))
    for side, vocabulary in zip(("source", "target"), vocabularies, strict=True):
        words = "".join(f"{token}\n" for token in range(vocabulary.vocabulary_size))
        (work / f"{side}.words").write_text(words)


def text_of_tokens(run: pathlib.Path, lines: list[str]) -> list[str]:
    """Decodes the token ids that a peer wrote, by the vocabulary of our run."""
    from keras_seq.run import Run

    _, target = Run.open(run).vocabularies
    # OpenNMT-tf may write `<unk>`.
    return target.decode(
        [[int(token) for token in line.split() if token.isdecimal()] for line in lines]
    )
