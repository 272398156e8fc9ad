"""A signal ends the process as an error does: context managers remove what they have made.

By default SIGTERM (``timeout``, CI systems, systemd) and SIGHUP (a closed terminal) end Python at once. Temporary
directories in memory and child processes then stay behind.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Final

_SIGNALS: Final = (signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


class SignalledError(BaseException):
    """Raised in the main thread by a signal that ends the process; only the code that ends it may catch this.

    No KeyboardInterrupt and no SystemExit: click makes an Abort of the one, Hypothesis a failing example of the other.

    Attributes:
        exit_code: 128 and the number of the signal, as shells have it.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.exit_code = 128 + number


@contextlib.contextmanager
def raised_signals() -> Iterator[None]:
    """In this block SIGTERM and SIGHUP raise :class:`SignalledError`, once; from then on they are ignored.

    A signal that is ignored, as SIGHUP is under ``nohup``, or that something else handles, stays what it is. In another
    thread than the main one nothing changes. A process that is made in the block needs a block of its own.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    mine = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]

    def end(number: int, _: FrameType | None) -> None:
        for each in mine:
            signal.signal(each, signal.SIG_IGN)
        raise SignalledError(number)

    for number in mine:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in mine:
            if signal.getsignal(number) is end:
                signal.signal(number, signal.SIG_DFL)
