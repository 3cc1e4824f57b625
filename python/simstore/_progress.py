"""Progress bars of tqdm, shown by calls with ``progress=True``."""

from __future__ import annotations

from typing import Any

from simstore._simstore import Progress


class Bars:
    """Progress callable that shows one bar at a time, for the current step of a call.

    The bar counts bytes if the step's total is known in bytes, otherwise items.
    """

    def __init__(self) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError as error:
            raise ImportError("progress=True needs tqdm: `pip install tqdm`, or give a callable") from error
        self._tqdm = tqdm
        self._bar: Any = None
        self._step: str | None = None

    def __call__(self, progress: Progress) -> None:
        if progress.step != self._step:
            self.close()
            self._step = progress.step
            if progress.total_bytes is None:
                self._bar = self._tqdm(desc=progress.step, total=progress.total, unit="", unit_scale=True, leave=False)
            else:
                self._bar = self._tqdm(
                    desc=progress.step, total=progress.total_bytes, unit="B", unit_scale=True, unit_divisor=1024, leave=False
                )
        if progress.total_bytes is None:
            if progress.total is not None:
                self._bar.total = progress.total
            self._bar.update(progress.count - self._bar.n)
        else:
            self._bar.set_postfix_str(f"{progress.count:,} {progress.step}", refresh=False)
            self._bar.update(progress.bytes - self._bar.n)

    def close(self) -> None:
        """Removes the bar from the screen."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
