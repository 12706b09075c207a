"""Signatures of models that generate text, with tokenizer, search and detokenizer in the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from keras_seq.inference.search import make_search
from keras_seq.search import SearchResult
from keras_seq.search.hypotheses import NEG_INF
from keras_seq.serving.feature_graph import join_features, language_joiner
from keras_seq.serving.signature_module import (
    padding_steps,
    signature,
    source_lengths,
    valid_ids,
    with_end_token,
)
from keras_seq.serving.text_graph import TextGraph
from keras_seq.serving.word_piece_graph import text_graph
from keras_seq.settings import SearchSettings
from keras_seq.text import EOS_ID, PAD_ID, UNK_ID, FeatureTokenizer, Tokenizer

# Shape letters: B batch, S source steps, P prompt steps, Z latent units, N n-best, L steps.


def translation_signatures(
    model: Any,
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    search: SearchSettings,
    max_length: int,
    max_characters: int,
    output: str = "translation",
) -> dict[str, Any]:
    """Builds the signatures of an encoder-decoder model. `output` is the name of the output text.

    Sources are truncated to `max_characters` before tokenization, and then to `max_length` tokens.
    With features or target languages, the signatures of text have a second input.
    """
    vocabulary_size = source_tokenizer.vocabulary_size
    run_search = make_search(model, search, target_tokenizer)

    def search_ids(ids: Any) -> SearchResult:
        source = ids[:, :max_length]
        known = (source >= 0) & (source < vocabulary_size)
        source = tf.where(known, source, UNK_ID)
        return _with_empty_translations(source, run_search(with_end_token(source)))

    def text_graphs() -> tuple[Any, Any]:
        source = text_graph(source_tokenizer)
        # Store a joint vocabulary only once, because a SentencePiece model takes megabytes.
        joint = target_tokenizer is source_tokenizer
        return source, source if joint else text_graph(target_tokenizer)

    second: tuple[str, Callable[[Any, Any], Any]] | None = None
    if isinstance(source_tokenizer, FeatureTokenizer):
        second = "features", join_features
    elif source_tokenizer.languages:
        second = "target_language", language_joiner(source_tokenizer)
    return _signatures(search_ids, text_graphs, max_characters, max_length, output, second)


def generation_signatures(
    model: Any, tokenizer: Tokenizer, search: SearchSettings, max_characters: int
) -> dict[str, Any]:
    """Builds the signatures of a language model that completes prompts.

    Prompts are truncated to `max_characters` before tokenization.
    """
    vocabulary_size = tokenizer.vocabulary_size
    # Leave room for at least one generated token after the prompt.
    max_length = search.max_length - 1
    run_search = make_search(model, search, tokenizer)

    def search_ids(ids: Any) -> SearchResult:
        prompt = valid_ids(ids[:, :max_length], vocabulary_size, end_stops=False)
        prompt = tf.pad(prompt, [[0, 0], [0, padding_steps(prompt)]])  # (B, P + padding)
        # The source is a dummy token. The graph must not know the source length, because the
        # search uses states of constant size if the length is known.
        rows = tf.shape(prompt)[0]
        return run_search(tf.fill([rows, tf.minimum(rows, 1)], EOS_ID), prompt)

    def text_graphs() -> tuple[Any, Any]:
        graph = TextGraph(tokenizer)
        return graph, graph

    return _signatures(search_ids, text_graphs, max_characters, max_length, "text")


def latent_signature(model: Any, tokenizer: Tokenizer, search: SearchSettings) -> Any:
    """Builds the signature that decodes latent codes of a `models.SequenceVAE` to text."""
    search_codes = make_search(model.from_latent, search, tokenizer)
    units = int(model.posterior.output["mean"].shape[-1])

    @signature(latent=([None, units], tf.float32))
    def decode(latent: Any) -> dict[str, Any]:
        result = search_codes(latent)
        texts = TextGraph(tokenizer).decode(result.tokens[:, 0])
        return {"text": texts, "score": result.scores[:, 0]}

    return decode


def _signatures(
    search_ids: Callable[[Any], SearchResult],
    text_graphs: Callable[[], tuple[Any, Any]],
    max_characters: int,
    max_length: int,
    output: str,
    second: tuple[str, Callable[[Any, Any], Any]] | None = None,
) -> dict[str, Any]:
    """Builds the signatures `ids`, `n_best`, and `serving_default`, which returns the best text.

    `second` has the name of a second input `(B,)` of the last two, and a function that joins it to
    the text.
    """
    inputs = dict.fromkeys(("text",) if second is None else ("text", second[0]), (1, tf.string))

    @signature(ids=(2, tf.int32))
    def ids(ids: Any) -> dict[str, Any]:
        result = search_ids(ids)
        return {
            "ids": result.tokens,
            "length": result.lengths,
            "score": result.scores,
            "truncated": result.truncated,
        }

    @signature(**inputs)
    def n_best(text: Any, other: Any = None) -> dict[str, Any]:
        if second is not None:
            text = second[1](text, other)
        source, target = text_graphs()
        tokens, truncated = source.encode(text, max_characters, max_length)
        result = ids(tokens)
        rows, count, steps = tf.unstack(tf.shape(result["ids"]))
        texts = target.decode(tf.reshape(result["ids"], (rows * count, steps)))
        return {
            output: tf.reshape(texts, (rows, count)),
            "score": result["score"],
            "truncated": (result["length"] > 0) & (result["truncated"] | truncated[:, None]),
        }

    @signature(**inputs)
    def serving_default(text: Any, other: Any = None) -> dict[str, Any]:
        outputs = n_best(text) if second is None else n_best(text, other)
        return {name: values[:, 0] for name, values in outputs.items()}

    return {"ids": ids, "n_best": n_best, "serving_default": serving_default}


def _with_empty_translations(source: Any, result: SearchResult) -> SearchResult:
    """Replaces the results of empty sources with one empty translation of score 0."""
    blank = (source_lengths(source) == 0)[:, None]  # (B, 1)
    lengths = tf.where(blank, 0, result.lengths)  # (B, N)
    first = tf.range(tf.shape(lengths)[1]) == 0
    return SearchResult(
        tokens=tf.where((lengths > 0)[..., None], result.tokens, PAD_ID),
        lengths=lengths,
        scores=tf.where(lengths > 0, result.scores, tf.where(blank & first, 0.0, NEG_INF)),
        truncated=result.truncated & (lengths > 0),
    )
