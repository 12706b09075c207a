"""Where the text is."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from keras_seq.settings.section import Section, a_choice, a_number, a_text


class DataSettings(Section):
    """Where the sentence pairs are and which are kept."""

    source: str | list[str] | None = a_text(
        "File of source sentences, one a line; plain or .gz. Many: a pattern or a list."
    )
    target: str | list[str] | None = a_text("File of target sentences, line by line with `source`.")
    pairs: str | list[str] | None = a_text(
        "File of source<TAB>target lines, or CSV, in place of the two above."
    )
    text: str | list[str] | None = a_text("File of lines, for a task that has no pairs.")
    labelled: str | list[str] | None = a_text(
        "File of text<TAB>label lines, or CSV; of text<TAB>tags, one for each word, for a tagger."
    )
    columns: str | None = a_text(
        "Columns of `pairs` or `labelled`, by number or header: source=1,target=3; text=2,label=1."
    )
    weights: str | list[str] | None = a_text("File of numbers, the weight of each pair.")
    file_weights: list[float] | None = a_text("Weights of whole files, one for each.")
    alignments: str | list[str] | None = a_text(
        "File of links between the words of each pair, as `0-0 1-2`."
    )
    valid_source: str | None = a_text("Source sentences to validate on.")
    valid_target: str | None = a_text("Target sentences to validate on.")
    valid_pairs: str | None = a_text("File of source<TAB>target lines to validate on.")
    valid_text: str | None = a_text("File of lines to validate on.")
    valid_labelled: str | None = a_text("File of labelled lines to validate on.")
    prepared: str | None = a_text("Directory made by `keras-seq prepare`, in place of all text.")
    max_source_length: int = a_number(200, 1, 100_000, "Longest source kept, in tokens.")
    max_target_length: int = a_number(200, 1, 100_000, "Longest target kept, in tokens.")
    concatenation: float = a_number(
        0.0, 0, 100, "Training pairs added for each pair: two random pairs, one after the other."
    )
    bucket_width: int = a_number(1, 1, 10_000, "Lengths this close share a batch.")
    packed: bool = a_choice(
        False, "Join the lines of `text`, and cut them at `max_target_length` tokens."
    )
    class_weights: Literal["none", "balanced"] = a_choice(
        "none", "What a line counts by its label; balanced: all labels together the same."
    )

    @model_validator(mode="after")
    def _weights_are_no_debts(self) -> DataSettings:
        if self.file_weights and not all(0 <= weight <= 1e9 for weight in self.file_weights):
            raise ValueError(
                f"file_weights: received {self.file_weights}, expected numbers from 0 to 1e9"
            )
        return self
