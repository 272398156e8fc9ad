"""Ctrl-C while a program loads: one line, and exit code 130. Without any import that takes time.

The handlers of ``kidx.signals`` follow when it is loaded. Until then nothing has to be cleaned up.
"""

import os
import signal


def end_at_once(name: str) -> None:
    """End the process at an interrupt, with one line on stderr, unless interrupts are ignored or handled already.

    Args:
        name: beginning of the line.
    """

    def end(*_: object) -> None:
        os.write(2, f"{name}: interrupted\n".encode())
        os._exit(130)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end)


def raise_again() -> None:
    """Undo :func:`end_at_once`, because handlers that clean up follow."""
    if getattr(signal.getsignal(signal.SIGINT), "__module__", None) == __name__:
        signal.signal(signal.SIGINT, signal.default_int_handler)
