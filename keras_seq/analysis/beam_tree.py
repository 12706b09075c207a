"""The hypotheses that a beam search considered at each step, for a visualization."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras

from keras_seq import backend
from keras_seq.inference.output_formats import END
from keras_seq.inference.predictor import encode_sources
from keras_seq.inference.search import make_search
from keras_seq.inference.translator import Translator
from keras_seq.search import SearchRecord, SearchResult, length_penalty
from keras_seq.search.hypotheses import exists
from keras_seq.text import EOS_ID

_DIGITS = 5


class BeamView:
    """Beam search that returns its tree of hypotheses. Raises SettingsError for sampling.

    Example:

    >>> from keras_seq.settings import SearchSettings
    >>> from keras_seq.text import Tokenizer
    >>> tokenizer = Tokenizer.train(["A dog runs."] * 9, size=290)
    >>> size = tokenizer.vocabulary_size
    >>> model = Transformer(size, size, 1, 1, units=8, feedforward_units=8, num_heads=2)
    >>> search = SearchSettings(beam_size=3, max_length=4)
    >>> tree = BeamView(Translator(model, tokenizer, tokenizer, search))("A dog")
    >>> [one["parent"] for one in tree["steps"][0]], len(tree["results"])
    ([None, None, None], 1)
    """

    def __init__(self, translator: Translator) -> None:
        model, self._settings = translator.model, translator.search_settings
        self._translator = translator
        self._source_pieces = translator.source_tokenizer.pieces
        self._target_pieces = translator.target_tokenizer.pieces
        find = make_search(
            model,
            self._settings,
            translator.target_tokenizer,
            unknown=translator.unknown,
            record=True,
        )
        self._search = backend.compiled(find, model.variables, ranks=[2])

    def __call__(self, line: str) -> dict[str, Any]:
        """Searches one line that is not blank, and returns the tree as JSON data.

        The keys are `source`; `source_tokens`; `steps`, a list of candidates for each step, best
        first; and `results`, best first.

        A candidate has `token`; `log_probability` of the token; `total` of all tokens up to it;
        `parent`, the index of a candidate of the previous step, None in the first; and `state`:
        `"live"` if it was or could have been continued, `"ended"` if it is a complete translation,
        which has a `score`, or `"pruned"` if better candidates filled the beam. A result has
        `text`, `score`, `truncated`, and `path`, the index of its candidate at each step.
        """
        translator = self._translator
        tokenizer, longest = translator.source_tokenizer, translator.max_source_length
        ((ids,), _) = encode_sources([line], tokenizer, longest)
        if not ids:
            raise ValueError("the line is blank: there is nothing to search for.")
        result, record = keras.tree.map_structure(
            keras.ops.convert_to_numpy, self._search(backend.padded([[*ids, EOS_ID]]))
        )
        # Removes the batch dimension, because the batch has one row.
        record = SearchRecord(*(part[0] for part in record))
        result = SearchResult(*(part[0] for part in result))
        steps = self._steps(record)
        return {
            "source": line,
            "source_tokens": [*(self._source_pieces[token].text for token in ids), END],
            "steps": steps,
            "results": list(self._results(result, steps)),
        }

    def _steps(self, record: SearchRecord) -> list[list[dict[str, Any]]]:
        steps: list[list[dict[str, Any]]] = []
        settings = self._settings
        shown: dict[int, int] = {}
        for step in range(int(record.steps)):
            before, shown = shown, {}
            length = keras.ops.array(step + 1, "int32")
            penalty = length_penalty(length, settings.length_normalization, settings.alpha)
            by = float(keras.ops.convert_to_numpy(penalty))
            candidates: list[dict[str, Any]] = []
            for place, total in enumerate(record.totals[step]):
                survives = bool(record.survives[step, place])
                # With a patience above 1, there are more candidates than beam slots.
                if not exists(total) or (place >= settings.beam_size and not survives):
                    continue
                shown[place] = len(candidates)
                token = int(record.tokens[step, place])
                parent = None
                if step:
                    # `slots` maps the beam slot of the parent to a candidate of the previous step.
                    parent = before[int(record.slots[step - 1][record.parents[step, place]])]
                so_far = steps[-1][parent]["total"] if parent is not None else 0.0
                state = "live"
                if not survives:
                    state = "pruned"
                elif token == EOS_ID:
                    state = "ended"
                candidates.append(
                    {
                        "token": END if token == EOS_ID else self._target_pieces[token].text,
                        "id": token,
                        "parent": parent,
                        "log_probability": round(float(total) - so_far, _DIGITS),
                        "total": float(total),
                        "state": state,
                    }
                    | ({"score": round(float(total) / by, _DIGITS)} if state == "ended" else {})
                )
            steps.append(candidates)
        for candidates in steps:
            for candidate in candidates:
                candidate["total"] = round(candidate["total"], _DIGITS)
        return steps

    def _results(
        self, result: SearchResult, steps: list[list[dict[str, Any]]]
    ) -> Iterator[dict[str, Any]]:
        for row, length in enumerate(result.lengths):
            if not length:
                continue
            tokens = [int(token) for token in result.tokens[row, :length]]
            yield {
                "text": self._translator.target_tokenizer.decode([tokens])[0],
                "score": round(float(result.scores[row]), _DIGITS),
                "truncated": bool(result.truncated[row]),
                "path": _path(tokens, steps),
            }


def _path(tokens: list[int], steps: list[list[dict[str, Any]]]) -> list[int]:
    """Returns the index of the candidate of each token. No two hypotheses have equal tokens."""
    path: list[int] = []
    for token, candidates in zip(tokens, steps, strict=False):
        parent = path[-1] if path else None
        for place, candidate in enumerate(candidates):
            if (
                candidate["id"] == token
                and candidate["parent"] == parent
                and candidate["state"] != "pruned"
            ):
                path.append(place)
                break
    return path
