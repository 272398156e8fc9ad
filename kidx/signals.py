"""Signals as exceptions: a signal ends the process as an error does, and context managers remove their files.

By default SIGTERM (``timeout``, CI systems, systemd) and SIGHUP (a closed terminal) end Python immediately. Temporary
directories in memory and child processes then remain. SIGINT raises KeyboardInterrupt by default, also in the middle
of starting a process, and a second one interrupts the cleanup after the first one.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
_DEFAULTS: Final = (signal.SIG_DFL, signal.default_int_handler)
_AGAIN: Final = 0.02
"""Seconds after which a signal is raised again if Python has dropped its exception."""


class SignalledError(BaseException):
    """Raised in the main thread by a signal that ends the process; only the code that ends it may catch this.

    It derives neither from KeyboardInterrupt, which click converts to Abort, nor from SystemExit, which Hypothesis
    reports as a failing example.

    Attributes:
        exit_code: 128 plus the number of the signal, as in shells.
    """

    def __init__(self, number: int) -> None:
        super().__init__("interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}")
        self.number = number
        self.exit_code = 128 + number


class _Held:
    """Number of blocks that hold signals back now, and the first signal that arrived in the meantime."""

    depth = 0
    number: int | None = None


_raised: Final[list[int]] = []
"""The signals for which an exception was raised."""


def _raise(number: int) -> None:
    if _Held.depth:
        _Held.number = _Held.number or number
        return
    _raised.append(number)
    raise SignalledError(number)


@contextlib.contextmanager
def raised_signals() -> Iterator[None]:
    """Raise :class:`SignalledError` in this block for SIGINT, SIGTERM and SIGHUP, once; then ignore them.

    A signal that is ignored, as SIGHUP is under ``nohup``, or that has another handler, keeps it. Outside the main
    thread nothing changes. A process that is created in the block needs such a block itself.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {number: signal.getsignal(number) for number in SIGNALS}
    mine = [number for number in SIGNALS if before[number] in _DEFAULTS]

    def end(number: int, _: FrameType | None) -> None:
        for each in mine:
            signal.signal(each, signal.SIG_IGN)
        _raise(number)

    known = len(_raised)
    for number in mine:
        signal.signal(number, end)
    try:
        with _raised_again(mine, end):
            yield
    except Exception as error:
        # Code in C, and code that catches every exception, may have converted the exception to a different error.
        if len(_raised) > known:
            raise SignalledError(_raised[known]) from error
        raise
    finally:
        for number in mine:
            if signal.getsignal(number) is end:
                signal.signal(number, before[number])


@contextlib.contextmanager
def _raised_again(numbers: list[signal.Signals], end: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Raise a signal again if its exception was raised where Python drops exceptions, such as in a finalizer."""
    usual = sys.unraisablehook

    def hook(dropped: Any) -> None:
        if not isinstance(dropped.exc_value, SignalledError) or not numbers:
            usual(dropped)
            return
        number = dropped.exc_value.number
        signal.signal(number, end)
        again = threading.Timer(_AGAIN, signal.pthread_kill, (threading.main_thread().ident, number))
        again.daemon = True
        again.start()

    sys.unraisablehook = hook
    try:
        yield
    finally:
        if sys.unraisablehook is hook:
            sys.unraisablehook = usual


@contextlib.contextmanager
def held_signals() -> Iterator[None]:
    """Hold signals back until the block ends. A process that is created in the block starts with blocked signals."""
    held = int(threading.current_thread() is threading.main_thread())  # handlers run only in the main thread
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    _Held.depth += held
    try:
        yield
    finally:
        _Held.depth -= held
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if held and not _Held.depth and (number := _Held.number) is not None:
            _Held.number = None
            _raise(number)


@contextlib.contextmanager
def signalled_exit(name: str) -> Iterator[None]:
    """Exit with one line on stderr and an exit code if a signal ends the block.

    After the block, an interrupt ends the process immediately, because everything is cleaned up.

    Args:
        name: beginning of the line.
    """
    try:
        with raised_signals():
            yield
    except SignalledError as signalled:
        print(f"{name}: {signalled}", file=sys.stderr)  # noqa: T201
        sys.exit(signalled.exit_code)
    finally:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
