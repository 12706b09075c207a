"""Learns tokenizers and label sets from the training text."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from keras_seq.plugins import added
from keras_seq.plugins.registry import call
from keras_seq.preparation.files import PairCounts, source_text
from keras_seq.preparation.pretrained import read_word_pieces
from keras_seq.preparation.target_languages import balanced_pairs, count_languages
from keras_seq.run import Vocabulary
from keras_seq.settings import (
    SIDES,
    TASKS,
    Settings,
    Side,
    VocabularySettings,
    as_list,
    preset_directory,
)
from keras_seq.text import (
    Example,
    FeatureTokenizer,
    InputError,
    Labels,
    Notice,
    PairFiles,
    TextRules,
    Tokenizer,
    WordPieceTokenizer,
    has_extra_spaces,
    import_tokenizer,
    language_tag,
    model_of_pieces,
    vector_words,
    without_surrogates,
    words_of,
)

# If there are more different labels than this, and most occur once, they are not labels.
_MAX_RARE_LABELS = 100
# Number of labels in the notice.
_LISTED = 10
# Extra spaces of a source are kept if at least this share of its lines has them.
_MIN_SPACES_SHARE = 0.01

ReadPairs = Callable[[], Iterator[Example]]


def check_labels(settings: Settings, read: ReadPairs, files: PairFiles, labels: Labels) -> None:
    """Raises InputError if the text has labels that the kept vocabulary `labels` lacks."""
    unit, counts = _count_labels(settings, read)
    unknown = sorted(set(counts) - set(labels.names))
    if unknown:
        raise InputError(
            f"{files}: {unit} {unknown[0]!r} is not among the {len(labels.names):,} of "
            f"training.from_run ({settings.training.from_run}), which are kept"
            + (f"; nor are {len(unknown) - 1:,} more" if len(unknown) > 1 else "")
        )


def _count_labels(settings: Settings, read: ReadPairs) -> tuple[str, Counter[str]]:
    """Returns "tag" or "label", for messages, and the frequency of each label."""
    tagged = settings.task == "tag"
    counts: Counter[str] = Counter()
    for pair in read():
        if pair.usable:
            counts.update(words_of(pair.target) if tagged else [pair.target])
    return "tag" if tagged else "label", counts


def with_learned(settings: Settings, source: Tokenizer, target: Vocabulary) -> Settings:
    """Updates the settings with the sizes and kinds of the learned vocabularies.

    A vocabulary may be smaller than requested. Only its file has the kind of an imported one.
    """
    tokenizer = settings.tokenizer
    learned: dict[Side, Tokenizer] = {
        side: vocabulary
        for side, vocabulary in zip(SIDES, (source, target), strict=True)
        # The settings do not describe the word pieces of a pretrained encoder.
        if isinstance(vocabulary, Tokenizer) and not isinstance(vocabulary, WordPieceTokenizer)
    }

    def values(side: Side) -> dict[str, Any]:
        vocabulary, requested = learned[side], tokenizer.of_side(side)
        if isinstance(vocabulary, FeatureTokenizer):
            vocabulary = vocabulary.source
        imported = requested.model is not None
        kind = vocabulary.kind if imported else requested.kind
        form = vocabulary.rules.form if imported else requested.normalization
        size = min(requested.size or vocabulary.vocabulary_size, vocabulary.vocabulary_size)
        return {"size": size, "kind": kind, "normalization": form}

    if source is target or len(learned) == 1:
        side: Side = next(iter(learned), "source")
        update: dict[str, Any] = values(side) if learned else {}
    else:
        update = {
            side: getattr(tokenizer, side).model_copy(
                update={
                    key: value
                    for key, value in values(side).items()
                    if value != getattr(tokenizer, key)
                }
            )
            for side in learned
        }
    return settings.model_copy(update={"tokenizer": tokenizer.model_copy(update=update)})


def _learn_with_plugin(
    requested: VocabularySettings, sentences: Iterator[str], keep_spaces: bool | None
) -> Tokenizer:
    """Learns a vocabulary with a plugin. `keep_spaces` None keeps extra spaces if there are any."""
    name, size = str(requested.kind), requested.size or 0
    form = requested.normalization if requested.normalization != "auto" else "nfc"
    rules = TextRules("unigram", form or "nfc", bool(requested.lowercase))
    has_spaces = False

    def lines() -> Iterator[str]:
        nonlocal has_spaces
        for line in map(without_surrogates, sentences):
            if line.strip():
                has_spaces = has_spaces or has_extra_spaces(line)
                yield rules.apply(line)

    learned = call("vocabulary", name, lambda: [*added("vocabulary")[name](lines(), size)])
    return call(
        "vocabulary",
        name,
        lambda: Tokenizer.from_bytes(
            model_of_pieces(
                learned,
                rules,
                size=size,
                symbols=as_list(requested.symbols),
                keep_spaces=has_spaces if keep_spaces is None else keep_spaces,
            )
        ),
    )


class VocabularyLearner(NamedTuple):
    """Learns the vocabularies of a run.

    `read` reads training pairs of `files`.
    """

    settings: Settings
    read: ReadPairs
    files: PairFiles
    notice: Notice
    counts: PairCounts

    def learn(self) -> Any:
        """Returns source and target vocabulary. A joint vocabulary is one object for both."""
        if TASKS[self.settings.task].has_labels:
            labels, description = self._labels()
            tokenizer = self._source_tokenizer("", str(self.files))
            self.notice(description)
            return tokenizer, labels
        if TASKS[self.settings.task].reads_sounds:
            tokenizer = self._learn(self._transcripts(), "target", "", str(self.files))
            return tokenizer, tokenizer
        if self.settings.tokenizer.joint or self.settings.model.copies:
            return self._joint()
        source, target = (
            f"{self.files}, {side}" if "pairs" in self.files.names else self.files.describe(side)
            for side in SIDES
        )
        counts = self._count_languages()
        lines = (pair.target for pair in self._balanced(counts))
        return (
            self._source_tokenizer("source", source, counts),
            self._learn(lines, "target", "target", target),
        )

    def _transcripts(self) -> Iterator[str]:
        """Yields the texts of recordings. Raises InputError if there are none."""
        task = TASKS[self.settings.task]
        texts = filter(str.strip, (task.transcript(pair.target) for pair in self._weighted()))
        if (first := next(texts, None)) is None:
            raise InputError(task.no_transcript)
        yield first
        yield from texts

    def _joint(self) -> tuple[Tokenizer, Tokenizer]:
        """Learns one vocabulary for both sides. Features are added to that of the source."""
        counts = self._count_languages()
        if self.files.has_lines:
            lines: Iterator[str] = (pair.target for pair in self._weighted())
        else:
            pairs = self._balanced(counts)
            texts = ((source_text(pair, self.files), pair.target) for pair in pairs)
            lines = itertools.chain.from_iterable(texts)
        name = "" if self.files.has_lines else "joint"
        tags = list(map(language_tag, counts))
        joint = self._learn(lines, "target", name, str(self.files), tags=tags)
        return self._with_features(joint) if self.files.has_features else joint, joint

    def _weighted(self) -> Iterator[Example]:
        # Pairs of weight 0 are not trained on. The tokenizer skips blank lines.
        return (pair for pair in self.read() if pair.weight)

    def _labels(self) -> tuple[Labels, str]:
        unit, counts = _count_labels(self.settings, self.read)
        total = counts.total()
        if len(counts) < 2:
            only = f" ({next(iter(counts))!r})" if counts else ""
            raise InputError(f"{self.files}: {len(counts)} {unit}{only}, expected at least 2")
        if len(counts) > max(_MAX_RARE_LABELS, total // 2):
            raise InputError(
                f"{self.files}: {len(counts):,} different {unit}s among {total:,}: expected "
                f"text<TAB>{unit} lines; are the columns the other way round?"
            )
        listed = ", ".join(f"{name} {count:,}" for name, count in counts.most_common(_LISTED))
        more = f", and {len(counts) - _LISTED:,} more" if len(counts) > _LISTED else ""
        # Sort the labels, so that their order does not depend on the order of the lines.
        return Labels(sorted(counts)), f"{len(counts):,} {unit}s: {listed}{more}"

    def _source_tokenizer(
        self, name: str, where: str, counts: Mapping[str, int] = MappingProxyType({})
    ) -> Tokenizer:
        """Returns the tokenizer of the pretrained encoder, or learns one.

        `counts` is the number of training pairs of each target language.
        """
        if (preset := self.settings.training.from_hub) is not None:
            pieces = read_word_pieces(preset_directory(preset))
            self.notice(
                f"source vocabulary of the encoder's {pieces.vocabulary_size:,} word pieces"
            )
            return pieces
        # The source keeps extra spaces if they are frequent enough to be intended. The target keeps
        # all spaces, because the model must be able to produce each training target.
        text = self.counts.source
        keep = text is not None and text.extra_spaces >= max(_MIN_SPACES_SHARE * text.lines, 1)
        lines = (source_text(pair, self.files) for pair in self._balanced(counts))
        if self.files.has_features:
            return self._with_features(self._learn(lines, "source", name, where, keep))
        words = itertools.chain(lines, self._words_with_vectors())
        tags = list(map(language_tag, counts))
        return self._learn(words, "source", name, where, keep, tags)

    def _words_with_vectors(self) -> Iterator[str]:
        """Yields words of the file of pretrained vectors, for a vocabulary of source words.

        A model with the vectors of words that are not in the training text understands them.
        """
        requested = self.settings.tokenizer.of_side("source")
        path = self.settings.training.source_embeddings
        if path is None or requested.kind != "word" or requested.model is not None:
            return
        words = vector_words(path, requested.size or 0)
        yield from (word for word in words for _ in range(requested.min_count or 1))

    def _with_features(self, tokenizer: Tokenizer) -> Tokenizer:
        """Adds the features of the training text to a tokenizer."""
        separator = self.settings.data.features_separator
        known = FeatureTokenizer(tokenizer, Labels(["-"]), separator)
        counts: Counter[str] = Counter()
        for pair in self._weighted():
            counts.update(known.split(pair.source)[1])
        if not counts:
            raise InputError(f"{self.files}: no pair has features (data.columns)")
        self.notice(f"{len(counts):,} features, separated by {separator!r}")
        return FeatureTokenizer(tokenizer, Labels(sorted(counts)), separator)

    def _count_languages(self) -> dict[str, int]:
        """Returns the number of training pairs of each target language; empty without any."""
        if not self.files.has_languages:
            return {}
        # All pairs, because a rare language may occur only in those held out for validation.
        return count_languages(self.files.read(), self.settings.data.temperature, self.notice)

    def _balanced(self, counts: Mapping[str, int]) -> Iterator[Example]:
        return balanced_pairs(self._weighted(), counts, self.settings.data.temperature)

    def _learn(
        self,
        sentences: Iterator[str],
        side: Side,
        name: str,
        where: str,
        keep_spaces: bool | None = None,
        tags: Sequence[str] = (),
    ) -> Tokenizer:
        requested = self.settings.tokenizer.of_side(side)
        if tags:
            symbols = [*as_list(requested.symbols), *tags]
            requested = requested.model_copy(update={"symbols": symbols})
        origin = "learned"
        try:
            if requested.model is not None:
                tokenizer = import_tokenizer(requested.model, sentences)
                origin = f"of {requested.model}"
            elif requested.kind in added("vocabulary"):
                tokenizer = _learn_with_plugin(requested, sentences, keep_spaces)
            else:
                tokenizer = Tokenizer.train(
                    sentences,
                    **requested.model_dump(exclude={"model", "symbols"}),
                    symbols=as_list(requested.symbols),
                    keep_spaces=keep_spaces,
                    # A size that the user gave is never changed.
                    lower_if_small=not self.settings.tokenizer.asks_for_size(side),
                    seed=self.settings.seed,
                    notice=self.notice,
                )
        except InputError as error:
            if requested.model is not None:
                raise
            raise InputError(f"{where}: {error}") from None
        known = {language_tag(name).casefold() for name in tokenizer.with_languages().languages}
        if missing := [tag for tag in tags if tag.casefold() not in known]:
            raise InputError(
                f"{requested.model or where}: the vocabulary has no symbol {missing[0]!r}, "
                "expected one for each target language"
            )
        self.notice(f"{name} vocabulary of {tokenizer.vocabulary_size:,} {origin}".lstrip())
        return tokenizer
