"""Settings of the search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from keras_seq.search.options import MAX_BATCH_TOKENS, UPPER_LIMITS, TextSearchOptions
from keras_seq.settings.errors import SettingsError
from keras_seq.settings.section import Section


def _option(name: str, **constraints: Any) -> Any:
    """Field with the default, the bounds and the help text of a search option."""
    option = TextSearchOptions.__dataclass_fields__[name]
    return Field(default=option.default, **option.metadata, **constraints)


class SearchSettings(Section):
    """The section `search` of the settings; see `keras_seq.search.SearchConfig`."""

    method: Literal["beam", "sampling"] = _option("method")
    beam_size: int = _option("beam_size")
    n_best: int = _option("n_best")
    patience: float = _option("patience")
    length_normalization: Literal["average", "gnmt", "none"] = _option("length_normalization")
    alpha: float = _option("alpha")
    coverage_penalty: float = _option("coverage_penalty")
    min_length: int = _option("min_length")
    min_length_ratio: float = _option("min_length_ratio")
    max_length: int = _option("max_length")
    max_length_ratio: float = _option("max_length_ratio")
    max_length_extra: int = _option("max_length_extra")
    no_repeat_ngram_size: int = _option("no_repeat_ngram_size")
    repetition_penalty: float = _option("repetition_penalty")
    temperature: float = _option("temperature")
    top_k: int = _option("top_k")
    top_p: float = _option("top_p")
    seed: int = _option("seed")
    rerank: Literal["none", "chrf", "bleu", "exact"] = _option("rerank")
    candidates: int = _option("candidates")
    forbidden: str | list[str] | None = _option("forbidden", min_length=1, max_length=4096)
    prefix: str | None = _option("prefix", min_length=1, max_length=4096)
    batch_size: int = _option("batch_size")

    @model_validator(mode="after")
    def _check_combinations(self) -> SearchSettings:
        beam = self.method == "beam"
        limits = dict(UPPER_LIMITS)
        if self.rerank != "none":
            limits["n_best"] = "candidates"
        elif beam:
            limits["n_best"] = "beam_size"
        for name, limit in limits.items():
            value, most = getattr(self, name), getattr(self, limit)
            if value > most:
                raise ValueError(
                    f"{name}: received {value}, expected at most search.{limit} ({most})"
                )
        for name in NOT_OF_METHOD[self.method]:
            if (value := getattr(self, name)) != type(self).model_fields[name].default:
                raise ValueError(
                    f"{name}: received {value}, which is for "
                    f"{'sampling' if beam else 'a beam'}, and search.method is {self.method}"
                )
        if self.batch_size * self.hypotheses * self.max_length > MAX_BATCH_TOKENS:
            raise ValueError(
                f"batch_size: received {self.batch_size:,}, expected at most "
                f"{MAX_BATCH_TOKENS // (self.hypotheses * self.max_length):,} with "
                f"{self.hypotheses:,} hypotheses of search.max_length ({self.max_length:,})"
            )
        return self

    def of_candidates(self, candidates: int, search: Mapping[str, Any]) -> dict[str, Any]:
        """Returns overrides of these settings for a search that finds several candidates.

        Args:
            candidates: The number of translations of each line.
            search: Other overrides.

        Raises:
            SettingsError: The beam of `search` is smaller.
        """
        beam_size = search.get("beam_size", candidates)
        if search.get("method", self.method) == "beam" and beam_size < candidates:
            raise SettingsError(
                f"candidates: received {candidates}, expected at most the beam size "
                f"({beam_size}): lower --candidates or raise --beam-size"
            )
        # A caller that chooses among the candidates needs the scores of the search.
        return {"rerank": "none", "n_best": candidates, "beam_size": candidates, **search}

    @property
    def hypotheses(self) -> int:
        """The number of hypotheses that the search holds for each line."""
        if self.rerank != "none":
            return self.candidates
        return self.beam_size if self.method == "beam" else self.n_best


# Options that a method does not support. Sampling ignores `beam_size` instead of refusing it, so
# that both methods work for a run with a beam size.
NOT_OF_METHOD = {
    "beam": ("temperature", "top_k", "top_p", "seed"),
    "sampling": ("patience", "coverage_penalty"),
}
