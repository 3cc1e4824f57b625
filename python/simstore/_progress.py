"""Bars of tqdm, for ``progress=True``."""

from __future__ import annotations

from typing import Any

from simstore._simstore import Progress


class Bars:
    """Shows the progress of the latest step, one bar at a time."""

    def __init__(self) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError as error:
            raise ImportError("progress=True needs tqdm: `pip install tqdm`, or give a callable") from error
        self._tqdm = tqdm
        self._bar: Any = None
        self._step: str | None = None

    def __call__(self, told: Progress) -> None:
        if told.step != self._step:
            self.close()
            self._step = told.step
            if told.total_bytes is None:
                self._bar = self._tqdm(desc=told.step, total=told.total, unit="", unit_scale=True, leave=False)
            else:
                self._bar = self._tqdm(
                    desc=told.step, total=told.total_bytes, unit="B", unit_scale=True, unit_divisor=1024, leave=False
                )
        if told.total_bytes is None:
            if told.total is not None:
                self._bar.total = told.total
            self._bar.update(told.count - self._bar.n)
        else:
            self._bar.set_postfix_str(f"{told.count:,} {told.step}", refresh=False)
            self._bar.update(told.bytes - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
