"""Conversion of Python values to JSON."""

from __future__ import annotations

import json
from typing import Any


def dumps(value: Any) -> str:
    """Returns a value as JSON text. Bytes become hexadecimal digits."""
    return json.dumps(value, default=_of_other, ensure_ascii=False)


def _of_other(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(f"{type(value).__name__} has no form in JSON")
