"""`keras-seq vectors`: trains, queries and plots word vectors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer

from keras_seq_cli.output import check_writable, emit, notice
from keras_seq_cli.shared_options import DryRun, LowerCase
from keras_seq_cli.signals import exit_on_sigterm

vectors = typer.Typer(
    help="Train word vectors, query neighbors and analogies, and plot a map.", no_args_is_help=True
)
_Vectors = Annotated[
    str, typer.Argument(help="File of word vectors in the word2vec text format, plain or .gz.")
]
_Count = Annotated[int, typer.Option(min=1, help="Number of words to print.")]
_Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]


@vectors.command(no_args_is_help=True)
def train(
    text: Annotated[
        str,
        typer.Argument(help="Text, one sentence per line, words separated by spaces; - for stdin."),
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", help="File for the vectors; gzipped if its name ends in .gz."
        ),
    ],
    algorithm: Annotated[
        Literal["skipgram", "cbow", "glove", "fasttext"],
        typer.Option(
            help="Training algorithm; fasttext: skip-gram with subwords, for unknown words too."
        ),
    ] = "skipgram",
    loss: Annotated[
        Literal["negative", "hierarchical", "softmax"] | None,
        typer.Option(help="Loss; negative sampling by default; glove has its own loss."),
    ] = None,
    units: Annotated[int, typer.Option(min=1, help="Size of the vectors.")] = 100,
    window: Annotated[
        int | None,
        typer.Option(min=1, help="Context words on each side; by default 5, or 15 for glove."),
    ] = None,
    min_count: Annotated[int, typer.Option(min=1, help="Minimum frequency of a word.")] = 5,
    negatives: Annotated[
        int, typer.Option(min=1, help="Negative samples per positive sample.")
    ] = 5,
    subsample: Annotated[
        float, typer.Option(min=0, help="Relative frequency above which a word is subsampled.")
    ] = 1e-3,
    learning_rate: Annotated[
        float | None,
        typer.Option(help="Initial learning rate; by default 0.025 for skipgram, otherwise 0.05."),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes over the text; by default 5, or 25 for glove.")
    ] = None,
    min_ngram: Annotated[
        int, typer.Option(min=1, help="Minimum length of a subword of fasttext.")
    ] = 3,
    max_ngram: Annotated[
        int, typer.Option(min=1, help="Maximum length of a subword of fasttext.")
    ] = 6,
    buckets: Annotated[
        int, typer.Option(min=1, help="Hash buckets for the subwords of fasttext.")
    ] = 2_000_000,
    lowercase: LowerCase = False,
    threads: Annotated[
        int, typer.Option(min=1, help="Threads; the result is deterministic with one thread.")
    ] = 1,
    seed: _Seed = 0,
    dry_run: DryRun = False,
) -> None:
    """Train word vectors on text."""
    from keras_seq.text import check_readable
    from keras_seq.vectors import VectorSettings

    settings = VectorSettings(
        algorithm=algorithm,
        loss=loss,
        units=units,
        window=window,
        min_count=min_count,
        negatives=negatives,
        subsample=subsample,
        learning_rate=learning_rate,
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

    with exit_on_sigterm():
        corpus = Corpus(text, min_count=min_count, lowercase=lowercase, notice=notice)
        notice(
            f"{corpus.words_read:,} words, {corpus.different:,} distinct; "
            f"{len(corpus.words):,} occur at least {min_count:,} times"
        )
        if dry_run:
            memory = memory_of_training(corpus, settings)
            emit([f"{len(corpus.words):,} vectors of size {units:,}", _megabytes(memory)])
            return
        train_vectors(corpus, settings, notice=notice).save(output)
    notice(f"{output} written")


@vectors.command(no_args_is_help=True)
def nearest(
    file: _Vectors,
    words: Annotated[list[str], typer.Argument(help="Words to look up.")],
    count: _Count = 10,
) -> None:
    """Print the nearest words and their cosine similarities."""
    from keras_seq.vectors import WordVectors

    word_vectors = WordVectors.load(file, notice=notice)
    neighbors = {word: word_vectors.nearest(word, count) for word in words}
    emit(
        line if len(words) == 1 else f"{word}\t{line}"
        for word, pairs in neighbors.items()
        for line in _lines(pairs)
    )


@vectors.command(no_args_is_help=True)
def analogy(
    file: _Vectors,
    a: Annotated[str, typer.Argument(help="First word of the example, as in man.")],
    b: Annotated[str, typer.Argument(help="Second word of the example, as in king.")],
    c: Annotated[str, typer.Argument(help="Word to complete, as in woman.")],
    count: _Count = 10,
) -> None:
    """Complete an analogy: print the words nearest to B - A + C."""
    from keras_seq.vectors import WordVectors

    emit(_lines(WordVectors.load(file, notice=notice).analogy(a, b, c, count)))


@vectors.command(no_args_is_help=True)
def plot(
    file: _Vectors,
    output: Annotated[str, typer.Option("--output", "-o", help="File for the map: .html or .png.")],
    count: Annotated[
        int, typer.Option(min=3, help="Number of words to show, from the first of the file.")
    ] = 500,
    word: Annotated[
        list[str] | None,
        typer.Option(help="Word to show, instead of the first --count words; repeatable."),
    ] = None,
    perplexity: Annotated[
        float | None,
        typer.Option(help="Perplexity of t-SNE; by default 30, or less for few words."),
    ] = None,
    seed: _Seed = 0,
) -> None:
    """Plot a map of words with t-SNE."""
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
    word_vectors = WordVectors.load(file, notice=notice)
    words = list(dict.fromkeys(word or word_vectors.words[:count]))
    points = vector_map(word_vectors, words, perplexity=perplexity, seed=seed)
    if ending == ".png":
        save_map_image(output, word_vectors.name, words, points)
    else:
        make_page("vectors", map_page(word_vectors, words, points)).save(output)
    notice(f"{output} written")


def _lines(pairs: list[tuple[str, float]]) -> Iterator[str]:
    for word, cosine in pairs:
        yield f"{word}\t{cosine:.4f}"


def _megabytes(count: int) -> str:
    return f"about {max(count / 2**20, 0.1):,.1f} MB of memory for training"


def _check_writable(path: str) -> None:
    from keras_seq.text import InputError

    if path == "-":
        raise InputError("-: cannot be written: expected the name of a file")
    check_writable(path)
