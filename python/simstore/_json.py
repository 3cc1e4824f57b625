"""Conversion of Python values to JSON."""

from __future__ import annotations

import json
from typing import Any


def dumps(value: Any) -> str:
    """Returns a value as JSON text, with bytes as hexadecimal digits."""
    return json.dumps(value, default=_encode_bytes, ensure_ascii=False)


def _encode_bytes(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(f"{type(value).__name__} has no form in JSON")
