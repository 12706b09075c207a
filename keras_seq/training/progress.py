"""Where a training stands after an update, as `state.json` of a checkpoint keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class TrainingProgress:
    """All that goes on counting when a training goes on, besides the arrays.

    Attributes:
        step: Updates done. With N batches an update, N times that is the number of the next batch.
        minutes: Wall time so far.
        validation: The state of `Validation`.
        signature: sacreBLEU's signature of the last score.
        backend: The Keras backend. Another one has batches of other shapes.
        log_sizes: Bytes of each log; what was appended later did not happen.
    """

    step: int = 0
    minutes: float = 0.0
    validation: dict[str, Any] = field(default_factory=dict)
    signature: str = ""
    backend: str = ""
    log_sizes: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """What JSON can hold."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> TrainingProgress:
        """Reads what `to_json` gave.

        Raises:
            ValueError: Something else.
        """
        default = asdict(cls())
        wrong = [
            key
            for key, example in default.items()
            if not isinstance(values.get(key), type(example)) or values.get(key) != values.get(key)
        ]
        if wrong or values["step"] < 0 or values["minutes"] < 0:
            raise ValueError(f"not the state of a training: {', '.join(wrong) or 'negative'}")
        if not all(type(size) is int and size >= 0 for size in values["log_sizes"].values()):
            raise ValueError("not the state of a training: log_sizes")
        return cls(**{key: values[key] for key in default})
