"""`keras-seq vectors`: vectors of words, from a text to a map."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer

from keras_seq_cli.output import emit, notice, why_not_written
from keras_seq_cli.signals import sigterm_exits

vectors = typer.Typer(
    help="Train vectors of words, ask for neighbours and analogies, draw a map.",
    no_args_is_help=True,
)
_Vectors = Annotated[str, typer.Argument(help="File of vectors, of ours or of others; or .gz.")]
_Count = Annotated[int, typer.Option(min=1, help="How many words.")]


@vectors.command(no_args_is_help=True)
def train(
    text: Annotated[
        str, typer.Argument(help="Text, a sentence a line, words parted by spaces; - for stdin.")
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", help="File for the vectors; packed if it ends in .gz.")
    ],
    method: Annotated[
        Literal["skipgram", "cbow", "glove", "fasttext"],
        typer.Option(help="fasttext: skip-gram over parts of words, for words never seen, too."),
    ] = "skipgram",
    loss: Annotated[
        Literal["negative", "hierarchical", "softmax"] | None,
        typer.Option(help="Negative sampling if absent; glove has a loss of its own."),
    ] = None,
    units: Annotated[int, typer.Option(min=1, help="Numbers of a vector.")] = 100,
    window: Annotated[
        int | None, typer.Option(min=1, help="Words on each side; 5, for glove 15, if absent.")
    ] = None,
    min_count: Annotated[
        int, typer.Option(min=1, help="Words that come less often are left out.")
    ] = 5,
    negatives: Annotated[
        int, typer.Option(min=1, help="Words of noise for each real one, for negative sampling.")
    ] = 5,
    subsample: Annotated[
        float,
        typer.Option(min=0, help="Share of the text above which a word is skipped at times."),
    ] = 1e-3,
    rate: Annotated[
        float | None,
        typer.Option(help="Learning rate; 0.025 for skipgram, 0.05 for others, if absent."),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Times over the text; 5, for glove 25, if absent.")
    ] = None,
    min_ngram: Annotated[
        int, typer.Option(min=1, help="Least characters of a part of a word, for fasttext.")
    ] = 3,
    max_ngram: Annotated[int, typer.Option(min=1, help="Most of them.")] = 6,
    buckets: Annotated[
        int, typer.Option(min=1, help="Numbers that parts of words are hashed to.")
    ] = 2_000_000,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Ignore case.")] = False,
    threads: Annotated[
        int, typer.Option(min=1, help="At work at once; with one a seed gives one result.")
    ] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be trained, and stop.")
    ] = False,
) -> None:
    """Train a vector for each word of a text."""
    from keras_seq.text import check_readable
    from keras_seq.vectors import VectorSettings

    settings = VectorSettings(
        method=method,
        loss=loss,
        units=units,
        window=window,
        min_count=min_count,
        negatives=negatives,
        subsample=subsample,
        rate=rate,
        epochs=epochs,
        min_ngram=min_ngram,
        max_ngram=max_ngram,
        buckets=buckets,
        threads=threads,
        seed=seed,
    )
    check_readable(text)
    _check_writable(output)
    from keras_seq.vectors.corpus import Corpus
    from keras_seq.vectors.training import memory_of_training, train_vectors

    with sigterm_exits():
        corpus = Corpus(text, min_count=min_count, lowercase=lowercase, notice=notice)
        notice(
            f"{corpus.words_read:,} words, {corpus.different:,} different ones; "
            f"{len(corpus.words):,} come {min_count:,} times or more"
        )
        if dry_run:
            memory = memory_of_training(corpus, settings)
            emit([f"{len(corpus.words):,} vectors of {units:,} numbers", _megabytes(memory)])
            return
        train_vectors(corpus, settings, notice=notice).save(output)
    notice(f"{output} written")


@vectors.command(no_args_is_help=True)
def nearest(
    file: _Vectors,
    words: Annotated[list[str], typer.Argument(help="Words, each with neighbours of its own.")],
    count: _Count = 10,
) -> None:
    """Print the words whose vectors point most nearly the same way, with their cosines."""
    from keras_seq.vectors import WordVectors

    known = WordVectors.load(file, notice=notice)
    found = {word: known.nearest(word, count) for word in words}
    emit(
        line if len(words) == 1 else f"{word}\t{line}"
        for word, pairs in found.items()
        for line in _lines(pairs)
    )


@vectors.command(no_args_is_help=True)
def analogy(
    file: _Vectors,
    a: Annotated[str, typer.Argument(help="As man ...")],
    b: Annotated[str, typer.Argument(help="... is to king ...")],
    c: Annotated[str, typer.Argument(help="... woman is to what?")],
    count: _Count = 10,
) -> None:
    """Print what is to C as B is to A: the words nearest to B - A + C, with their cosines."""
    from keras_seq.vectors import WordVectors

    emit(_lines(WordVectors.load(file, notice=notice).analogy(a, b, c, count)))


@vectors.command(no_args_is_help=True)
def plot(
    file: _Vectors,
    output: Annotated[
        str, typer.Option("--output", "-o", help="File for the map: a page (.html) or a .png.")
    ],
    count: Annotated[
        int, typer.Option(min=3, help="How many words, from the file's first on.")
    ] = 500,
    word: Annotated[
        list[str] | None,
        typer.Option(help="A word to show, instead of the first; may be given again."),
    ] = None,
    perplexity: Annotated[
        float | None,
        typer.Option(help="Neighbours of a word that count; 30, or fewer of few words, if absent."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
) -> None:
    """Draw a map of words by t-SNE: near each other where their vectors are."""
    from keras_seq.analysis.pages import make_page
    from keras_seq.text import InputError
    from keras_seq.vectors import WordVectors
    from keras_seq.vectors.mapping import map_page, require, save_map_image, vector_map

    ending = Path(output).suffix.lower()
    if ending not in (".html", ".png"):
        raise InputError(f"{output}: expected a name that ends in .html or .png")
    _check_writable(output)
    require("sklearn", "scikit-learn")
    if ending == ".png":
        require("matplotlib", "matplotlib")
    known = WordVectors.load(file, notice=notice)
    shown = list(dict.fromkeys(word or known.words[:count]))
    places = vector_map(known, shown, perplexity=perplexity, seed=seed)
    if ending == ".png":
        save_map_image(output, known.name, shown, places)
    else:
        page = make_page("vectors", map_page(known, shown, places))
        Path(output).write_text(page, encoding="utf-8", newline="\n")
    notice(f"{output} written")


def _lines(pairs: list[tuple[str, float]]) -> Iterator[str]:
    for word, cosine in pairs:
        yield f"{word}\t{cosine:.4f}"


def _megabytes(count: int) -> str:
    return f"about {max(count / 2**20, 0.1):,.1f} MB for the tables of the training"


def _check_writable(path: str) -> None:
    from keras_seq.text import InputError

    wrong = f"{path}: cannot be written: not a file" if path == "-" else why_not_written(path)
    if wrong:
        raise InputError(wrong)
