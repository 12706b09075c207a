"""Training progress, as stored in `state.json` of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class TrainingProgress:
    """The state of a training, apart from its arrays.

    Attributes:
        step: Number of updates. With N batches per update, N times this is the number of the next
            batch.
        minutes: Wall time so far.
        validation: The state of `Validation`.
        signature: The sacreBLEU signature of the last score.
        backend: The Keras backend. Backends have batches of different shapes.
        log_sizes: Size of each log in bytes. Later entries are removed on resume.
    """

    step: int = 0
    minutes: float = 0.0
    validation: dict[str, Any] = field(default_factory=dict)
    signature: str = ""
    backend: str = ""
    log_sizes: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Returns a dict for JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> TrainingProgress:
        """Reads the result of `to_json`.

        Raises:
            ValueError: If a value is missing or invalid.
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
