"""The configuration of a search over token ids."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, get_args

from keras_seq.search.options import UPPER_LIMITS, SearchOptions
from keras_seq.text import BOS_ID, EOS_ID, PAD_ID, UNK_ID

# Targets never contain the padding, unknown and start tokens.
NEVER_GENERATED = (PAD_ID, UNK_ID, BOS_ID)


@dataclass(frozen=True, kw_only=True)
class SearchConfig(SearchOptions):
    """Options of `beam_search` and `sample`.

    Both functions take a configuration, single options, or both. These calls are equal:

        beam_search(model, source, beam_size=4, max_length=40)
        beam_search(model, source, SearchConfig(beam_size=4, max_length=40))
        beam_search(model, source, SearchConfig(beam_size=4), max_length=40)

    The length limits of a row come from its own source, of length S' without padding, and its own
    prefix, of length P'. Lengths count the end token:

        max = min(max_length, max(floor(max_length_ratio S') + max_length_extra,
                                  P' + max_length_extra))
        min = min(max, max(min_length, floor(min_length_ratio S')))

    Ratios and extra apply to sources that are token ids. For any other source, such as images,
    `max_length` is the limit.

    Args:
        beam_size: Number K of hypotheses in the beam of a row; 1 is greedy search.
        n_best: Number N of targets returned for each row: the best of the beam, at most K, or
            independent samples.
        patience: Beam search stops when `patience * K` hypotheses have ended. Above 1, the first
            `(patience - 1) K` of them leave their beam slots to live hypotheses.
        length_normalization: `"average"`, `"gnmt"` or `"none"`; see `length_penalty`.
        alpha: Exponent of the length normalization.
        coverage_penalty: Weight of `coverage_score` in beam search. Above 0, the model must offer
            `decoder_step_with_attention`.
        min_length: Minimum length of a target.
        min_length_ratio: Minimum length of a target for each source token.
        max_length: Maximum length of a target.
        max_length_ratio: Maximum length of a target for each source token.
        max_length_extra: Tokens allowed in addition to `max_length_ratio`, and after a prefix.
        no_repeat_ngram_size: Integer n: no n-gram occurs twice in a target; 0 is no limit.
        repetition_penalty: The logit of a token that the target already contains is divided by
            the penalty if positive and multiplied by it if negative, before the softmax. Scores
            then differ from forced decoding.
        temperature: In sampling, the log-probabilities are divided by the temperature.
        top_k: In sampling, only the k most probable tokens are candidates; 0 is no limit.
        top_p: In sampling, only the most probable tokens are candidates, as many as needed for
            their probabilities, after temperature and `top_k`, to sum to `top_p`.
        seed: In sampling, an integer from 0 to 2^32 - 1, or a scalar uint32 tensor.
        forbidden_tokens: Ids that are never generated. Their probability is not redistributed,
            so scores equal forced decoding.
        forbidden_sequences: Sequences of ids that no target contains.
        start_token: Id of the first decoder input.
        end_token: Id that ends a target.

    Raises:
        ValueError: If an option is out of its bounds.

    Example:

    >>> config = SearchConfig(beam_size=4, max_length=40)
    >>> config.n_best, config.length_normalization
    (1, 'average')

    Reference:
        Patience: Kasai et al., "A Call for Clarity in Beam Search", 2024,
        https://arxiv.org/abs/2204.05424. Repetition penalty: Keskar et al., "CTRL", 2019,
        equation 2, https://arxiv.org/abs/1909.05858; the paper leaves negative logits open.
        `top_k`: Fan, Lewis and Dauphin, 2018, https://arxiv.org/abs/1805.04833.
        `top_p`: Holtzman et al., 2020, https://arxiv.org/abs/1904.09751.
    """

    forbidden_tokens: Sequence[int] = NEVER_GENERATED
    forbidden_sequences: Sequence[Sequence[int]] = ()
    start_token: int = BOS_ID
    end_token: int = EOS_ID

    def __post_init__(self) -> None:
        for option in fields(SearchOptions):
            _check(option.name, getattr(self, option.name), option.type, **option.metadata)
        for name, limit in UPPER_LIMITS.items():
            value, most = getattr(self, name), getattr(self, limit)
            if value > most:
                raise ValueError(f"`{name}` must be at most `{limit}`, {most}, received {value}.")
        if self.end_token in self.forbidden_tokens or [self.end_token] in map(
            list, self.forbidden_sequences
        ):
            raise ValueError(f"the end token, {self.end_token}, cannot be forbidden.")
        if not all(self.forbidden_sequences):
            raise ValueError("`forbidden_sequences` must not contain an empty sequence.")


def make_config(config: SearchConfig | None, options: dict[str, Any]) -> SearchConfig:
    """Returns `config` with `options` replaced, or a new configuration if `config` is None."""
    return replace(config, **options) if config else SearchConfig(**options)


def _check(
    name: str,
    value: Any,
    kind: Any,
    *,
    description: str,
    ge: float | None = None,
    gt: float | None = None,
    le: float = 0,
) -> None:
    """Raises `ValueError` if an option has a wrong type or is out of its bounds."""
    if choices := get_args(kind):
        if value not in choices:
            raise ValueError(f"`{name}` must be one of {', '.join(choices)}, received {value!r}.")
        return
    if kind is Any and not isinstance(value, numbers.Real):
        return  # A seed may be a tensor.
    is_kind = isinstance(value, numbers.Real if kind is float else numbers.Integral)
    if not is_kind or value > le or (value < ge if ge is not None else value <= gt):
        bounds = f"from {ge:,} to {le:,}" if ge is not None else f"above {gt:,} and at most {le:,}"
        noun = "a number" if kind is float else "an integer"
        raise ValueError(f"`{name}` must be {noun} {bounds}, received {value!r}.")
