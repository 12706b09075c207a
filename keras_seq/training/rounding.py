"""Numbers for logs."""

import math
from collections.abc import Mapping


def rounded(numbers: Mapping[str, float]) -> dict[str, float | None]:
    """Rounds numbers for JSON to six digits; None replaces numbers that are not finite."""

    def round_number(value: float) -> float | None:
        if isinstance(value, int):
            return value
        return float(f"{value:.6g}") if math.isfinite(value) else None

    return {key: round_number(value) for key, value in numbers.items()}
