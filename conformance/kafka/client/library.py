"""Access to the optional kafka-python: its classes for the protocol's messages, and its names of errors."""

from __future__ import annotations

import warnings
from functools import cache
from importlib import import_module
from typing import Any, Final

from conformance.errors import ToolError

_MODULES: Final = ("admin", "consumer", "metadata", "producer")


@cache
def kafka_python() -> Any:
    """Import kafka-python.

    Raises:
        ToolError: kafka-python is not installed.
    """
    try:
        with warnings.catch_warnings():
            # On import, kafka-python reads its schemas in a way that is deprecated in Python 3.11 and 3.12.
            warnings.simplefilter("ignore", DeprecationWarning)
            for name in _MODULES:
                import_module(f"kafka.protocol.{name}")
            return import_module("kafka")
    except ImportError as error:
        raise ToolError("requests to a broker require kafka-python; install with pip install 'kidx[broker]'") from error


@cache
def request_class(api: str) -> Any:
    """Return the class of the requests of an API, such as ``ListOffsets``.

    Raises:
        ToolError: kafka-python is not installed.
    """
    kafka_python()
    modules = (import_module(f"kafka.protocol.{name}") for name in _MODULES)
    return next(found for module in modules if (found := getattr(module, f"{api}Request", None)) is not None)


@cache
def error_name(code: int) -> str | None:
    """Return the name of a protocol error; None for 0, and ``ERROR_<code>`` for an unknown code."""
    if not code:
        return None
    kafka_python()
    known = import_module("kafka.errors").kafka_errors.get(code)
    return f"ERROR_{code}" if known is None else str(known.message)
