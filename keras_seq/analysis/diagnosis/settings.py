"""The search settings of an error analysis, one per beam size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keras_seq.settings import SearchSettings, Settings, SettingsError, load_settings

# With these penalties, a search does not maximize the log-probability.
_SCORE_PENALTIES = ("coverage_penalty", "repetition_penalty")
_SAMPLING = ("method", "temperature", "top_k", "top_p", "seed")


def diagnosis_settings(
    settings: Settings,
    beam_sizes: Sequence[int],
    search: Mapping[str, Any] | None = None,
    notice: Callable[[str], None] | None = None,
) -> dict[int, SearchSettings]:
    """Returns the search settings of each beam size. `search` overrides settings of the run.

    If the run samples, `notice` is called, because a diagnosis does not. Raises SettingsError if a
    beam is missing or repeated, or if scores would not be log-probabilities.
    """
    if not beam_sizes or len(set(beam_sizes)) < len(beam_sizes):
        raise SettingsError(
            f"beam_sizes: received {list(beam_sizes)}, expected different beam sizes"
        )
    overrides = dict(search or {})
    if settings.search.method == "sampling":
        # Resets all sampling settings, because beam search rejects them.
        overrides |= {name: SearchSettings.model_fields[name].default for name in _SAMPLING}
        if notice is not None:
            notice("the run samples its translations; the diagnosis uses beam search")
    searches = {}
    for beam in beam_sizes:
        changed = overrides | {"beam_size": beam, "n_best": 1}
        searches[beam] = load_settings(
            base=settings.to_dict(),
            overrides={f"search.{name}": value for name, value in changed.items()},
        ).search
    for name in _SCORE_PENALTIES:
        default = SearchSettings.model_fields[name].default
        if (value := getattr(searches[beam_sizes[0]], name)) != default:
            raise SettingsError(
                f"search.{name}: received {value}, expected {default:g}: a diagnosis compares "
                "log-probabilities, and this setting changes scores: pass "
                f"--{name.replace('_', '-')} {default:g}"
            )
    return searches
