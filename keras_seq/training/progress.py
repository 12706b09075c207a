"""Training progress, as stored in `state.json` of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class TrainingProgress:
    """The state of a training, apart from its arrays.

    With N batches per update, the next batch is number N * `step`. `validation` is the state of
    `Validation`, and `signature` the sacreBLEU signature of the last score. `backend` is stored
    because backends have batches of different shapes. `log_sizes` has the size of each log in
    bytes; later entries are removed on resume.
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
        """Reads the result of `to_json`, or raises ValueError."""
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
