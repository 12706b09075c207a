"""Text files, vocabularies and tokenizers, without Keras and TensorFlow."""

from .changed_vocabulary import pieces_in
from .column_choice import LABELED, PAIR, TAGGED, Roles, parse_columns
from .cutting import SubwordSampling, subword_sampling
from .dates import DateCorpus, date_corpus, date_pairs
from .errors import InputError, Notice
from .feature_tokenizer import (
    FeatureTokenizer,
    feature_notice,
    plain_sources,
    source_of,
    split_features,
)
from .given_pieces import model_of_pieces
from .imported import import_tokenizer
from .labeled_lines import read_labeled
from .labels import FIRST_LABEL, Labels
from .languages import (
    add_language,
    language_tag,
    split_language,
    with_languages,
    without_languages,
)
from .learning import KINDS, Kind, check_symbols, has_extra_spaces, without_surrogates
from .letter_trigrams import letter_trigrams, trigram_ids
from .normalization import Form, TextRules
from .pair_files import Example, PairFiles, expand_names
from .reading import check_readable, check_same_length, count_lines, read_lines, read_pairs
from .special_ids import BOS_ID, EOS_ID, FIRST_WORD, INSIDE_ID, PAD_ID, UNK_ID
from .statistics import LineCounter, LineStatistics
from .tables import read_table
from .tagged_words import WordTokens, word_tokens, words_of
from .tokenizer import Piece, Tokenizer
from .units import Units, choose_transcript_units, choose_units
from .word_characters import WORD_CHARACTERS, shown_word, word_characters
from .word_links import link_tokens, tokens_by_offsets, tokens_of_words
from .word_piece_tokenizer import WordPieceTokenizer, tokenizer_from_bytes
from .word_vectors import piece_vectors, read_word_vectors, vector_width, vector_words

__all__ = [
    "BOS_ID",
    "EOS_ID",
    "FIRST_LABEL",
    "FIRST_WORD",
    "INSIDE_ID",
    "LABELED",
    "PAD_ID",
    "PAIR",
    "TAGGED",
    "UNK_ID",
    "WORD_CHARACTERS",
    "DateCorpus",
    "Example",
    "FeatureTokenizer",
    "Form",
    "InputError",
    "KINDS",
    "Kind",
    "Labels",
    "LineCounter",
    "LineStatistics",
    "Notice",
    "PairFiles",
    "Piece",
    "Roles",
    "SubwordSampling",
    "TextRules",
    "Tokenizer",
    "Units",
    "WordPieceTokenizer",
    "WordTokens",
    "add_language",
    "check_readable",
    "check_same_length",
    "check_symbols",
    "choose_transcript_units",
    "choose_units",
    "count_lines",
    "date_corpus",
    "date_pairs",
    "expand_names",
    "feature_notice",
    "has_extra_spaces",
    "import_tokenizer",
    "language_tag",
    "letter_trigrams",
    "link_tokens",
    "model_of_pieces",
    "parse_columns",
    "piece_vectors",
    "pieces_in",
    "read_labeled",
    "read_lines",
    "read_pairs",
    "read_table",
    "read_word_vectors",
    "shown_word",
    "source_of",
    "split_features",
    "split_language",
    "subword_sampling",
    "tokenizer_from_bytes",
    "tokens_by_offsets",
    "tokens_of_words",
    "trigram_ids",
    "vector_width",
    "vector_words",
    "with_languages",
    "plain_sources",
    "without_languages",
    "without_surrogates",
    "word_characters",
    "word_tokens",
    "words_of",
]
