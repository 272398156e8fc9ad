"""External Python classes (``python:MODULE:FACTORY``).

``FACTORY`` is called as ``factory(kind, path, base_offset, max_index_size, writable)`` and returns an index: an object
with the methods of :class:`PythonOffsetIndex`, :class:`PythonTimeIndex` or :class:`PythonTransactionIndex`, which have
the names of kidx's methods. If the factory has a parameter ``release``, it receives the release whose behaviour is
expected. It raises ``NotImplementedError`` for a kind of index that it does not have. A method that an index does not
have may raise it, too, or be omitted.

An index rejects an operation by raising an exception. The first matching row is its error kind in the protocol:

============================================ ============================================================
an exception with an attribute ``kind``      that kind; :mod:`kidx.errors` has such exceptions
``NotImplementedError``                      the operation is unsupported
``OSError``                                  ``io``
``OverflowError``                            ``offset_overflow``
``IndexError``                               ``out_of_bounds``
``BufferError``                              ``buffer_overflow``
``ValueError``, but not ``UnicodeError``     ``invalid_argument``, as Java's ``IllegalArgumentException``
``RuntimeError``, but not ``RecursionError`` ``illegal_state``, as Java's ``IllegalStateException``
any other exception                          a ``failure``: a bug, shown with its traceback
============================================ ============================================================

An offset out of order, a corrupt file, an unknown version, a read-only and a closed index therefore need an exception
with an attribute ``kind``. In Python, all of these would be a ``ValueError``, as is ``mmap closed or invalid``, and the
harness does not guess which is meant.

Results that are floats, or integers of more than 64 bits, are rejected.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import operator
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

from conformance.errors import ToolError
from conformance.implementations.protocol import BULK, METHODS, OptionalMembers
from conformance.implementations.try_out import TRIED_ON_INDEXES, missing, tried
from conformance.operations import ERROR_KINDS, OK, UNSUPPORTED, Observation, Operation, Outcome, State
from conformance.operations.index import ESSENTIAL, INDEX_OPS
from conformance.operations.op import Shape
from conformance.operations.outcomes import FAILURE
from kidx import AbortedTxn, OffsetPosition
from kidx.java_values import LONG_MAX, LONG_MIN


class ShapeError(TypeError):
    """Result of a method that has the wrong type."""


def shaped(shape: Callable[[Any], Any], value: Any) -> Any:
    """Return a result, converted to Python's own types.

    Raises:
        ShapeError: The result has another type.
    """
    try:
        return shape(value)
    except (TypeError, ValueError) as error:
        raise ShapeError(f"returned {value!r}: {error}") from None


def integer(value: Any) -> int:
    """Return a 64-bit integer as a Python ``int``.

    Raises:
        TypeError, ValueError: The value is not a 64-bit integer.
    """
    number = operator.index(value)  # numpy's integers are fine, floats are not
    if LONG_MIN <= number <= LONG_MAX:
        return number
    raise ValueError("expected 64-bit integers")


def pair(value: Any) -> tuple[int, int]:
    """Return two 64-bit integers."""
    first, second = value
    return integer(first), integer(second)


def _pair_or_none(value: Any) -> tuple[int, int] | None:
    return None if value is None else pair(value)


def flag(value: Any) -> bool:
    """Return a truth value.

    Raises:
        TypeError: The value is neither True nor False.
    """
    if isinstance(value, bool):
        return value
    raise TypeError("expected True or False")


def _transactions(value: Any) -> tuple[tuple[int, ...], ...]:
    found = tuple(tuple(integer(field) for field in txn) for txn in value)
    if any(len(txn) != 4 for txn in found):
        raise ValueError("an aborted transaction has four numbers")
    return found


def _collected(value: Any) -> tuple[tuple[tuple[int, ...], ...], bool]:
    transactions, complete = value
    return _transactions(transactions), flag(complete)


_CHECKS: Final[dict[Shape, Callable[[Any], Any]]] = {
    Shape.FLAG: flag,
    Shape.PAIR: pair,
    Shape.MAYBE_PAIR: _pair_or_none,
    Shape.TRANSACTIONS: _transactions,
    Shape.COLLECTED: _collected,
}
SHAPES: Final = {name: _CHECKS[each.gives] for name, each in INDEX_OPS.items() if each.gives in _CHECKS}
"""Checks of the results, by the operation of the method."""


Factory = Callable[..., Any]


class PythonIndex(Protocol):
    """Methods of all three kinds of index. The result of a method without a return value is ignored.

    Methods may be called on a closed index, because Kafka executes some of them. ``close_handler`` is optional: it
    releases the file as a killed process does, without trimming or flushing it. If it is missing, the object is only
    discarded.
    """

    def truncate_to(self, offset: int) -> None:
        """Remove the entries with this offset or a larger one."""

    def reset(self) -> None:
        """Remove all entries."""

    def flush(self) -> None:
        """Write the changes to disk."""

    def sanity_check(self) -> None:
        """Raise an exception of kind ``corrupt`` if the file is invalid."""

    def close(self) -> None:
        """Close the file, as a clean shutdown does."""

    def delete_if_exists(self) -> bool:
        """Close and delete the file; return True if it existed."""

    def rename_to(self, path: Path) -> None:
        """Rename the file; the index continues under the new name."""


class PythonMappedIndex(PythonIndex, Protocol):
    """Methods of offset and time indexes. The attributes may be properties.

    Attributes:
        max_entries: The number of entries that fit into the file.
        is_full: True if an append would fail because the index is full.
        length: The length of the file in bytes.
    """

    entries: int
    max_entries: int
    is_full: bool
    length: int

    def lookup(self, target: int) -> tuple[int, int]:
        """Return the last entry whose key is at or below the target."""

    def entry(self, n: int) -> tuple[int, int]:
        """Return the entry in slot ``n``."""

    def truncate(self) -> None:
        """Remove all entries, without changing the length of the file."""

    def resize(self, size: int) -> bool:
        """Change the length of the file; return True if that was necessary."""

    def trim_to_valid_size(self) -> None:
        """Truncate the file after the last entry."""


class PythonOffsetIndex(PythonMappedIndex, Protocol):
    """Offset index; its entries are (offset, position)."""

    last_offset: int

    def append(self, offset: int, position: int) -> None:
        """Add an entry."""

    def fetch_upper_bound_offset(self, fetch_offset: OffsetPosition, fetch_size: int) -> tuple[int, int] | None:
        """Return the first entry at or after ``fetch_offset.position + fetch_size``."""


class PythonTimeIndex(PythonMappedIndex, Protocol):
    """Time index; its entries are (timestamp, offset)."""

    last_entry: tuple[int, int]

    def maybe_append(self, timestamp: int, offset: int, skip_full_check: bool = False) -> None:
        """Add an entry if its timestamp is larger than the last one."""


class PythonTransactionIndex(PythonIndex, Protocol):
    """Transaction index; its factory may ignore ``max_index_size`` and ``writable``."""

    last_offset: int | None

    def __len__(self) -> int:
        """Return the number of complete records."""

    def append(self, txn: AbortedTxn) -> None:
        """Add a record: producer id, first offset, last offset and last stable offset."""

    def all_aborted_txns(self) -> list[AbortedTxn]:
        """Return every record."""

    def collect_aborted_txns(self, fetch_offset: int, upper_bound_offset: int) -> tuple[Any, bool]:
        """Return the transactions that a fetch must skip, and True if no later segment can have more."""


_KINDS_OF_BUILTINS: Final[tuple[tuple[type[Exception], str | None], ...]] = (
    (NotImplementedError, "unsupported"),
    (UnicodeError, None),
    (RecursionError, None),
    (OSError, "io"),
    (OverflowError, "offset_overflow"),
    (IndexError, "out_of_bounds"),
    (BufferError, "buffer_overflow"),
    (ValueError, "invalid_argument"),
    (RuntimeError, "illegal_state"),
)


def kind_of(error: BaseException) -> str | None:
    """Return the error kind of an exception according to the table above; None for a bug."""
    kind = getattr(error, "kind", None)
    if kind in ERROR_KINDS:
        return str(kind)
    return next((kind for builtin, kind in _KINDS_OF_BUILTINS if isinstance(error, builtin)), None)


def load_factory(module: str, name: str) -> Factory:
    """Return the factory of a module, whose name may have dots; the working directory is on the import path.

    Raises:
        ToolError: The module cannot be imported, or has no such function.
    """
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise ToolError(f"cannot import the module {module}: {type(error).__name__}: {error}") from error
    try:
        found = operator.attrgetter(name)(found)
    except AttributeError:
        raise ToolError(f"the module {module} has no {name}") from None
    if not callable(found):
        raise ToolError(f"{module}:{name} is not a function or class but {type(found).__name__}")
    return found  # type: ignore[no-any-return]


class PythonObjectIndex(OptionalMembers):
    """Indexes of a factory, as an implementation (see :class:`conformance.implementations.protocol`).

    An exception without an error kind, or a result of the wrong type, is the outcome ``failure``, whose text has the
    traceback or the result. All later operations of the example fail in the same way. The state of an observation is
    None if no index is open, an attribute is missing, or a closed index raises.

    Args:
        factory: The factory; see the module.
        release: The release whose dialect the indexes must follow.
        name: The name in reports.
    """

    speaks_kafka = False
    takes_negative_sizes = False

    def __init__(self, factory: Factory, release: str, name: str = "python") -> None:
        self.name = f"{name} {release}"
        self.release = release
        self._factory = factory
        self._options = {"release": release} if _takes_release(factory) else {}
        self._directory = Path()
        self._index: Any = None
        self._kind = ""
        self._closed = True
        self._failure: Outcome | None = None
        self._lacking: set[str] = set()
        self._lacking |= missing(tried(self, TRIED_ON_INDEXES.values()))

    def begin(self, directory: Path) -> None:
        """Begin an example; see the protocol."""
        self.end()
        self._directory = directory
        self._failure = None

    def end(self) -> None:
        """End the example; see the protocol. Exceptions while the index is released are ignored."""
        with contextlib.suppress(Exception):
            self._release()

    def supports(self, operation: str) -> bool:
        """Return True if an operation is supported; all were tried when the implementation was created."""
        name = BULK.get(operation, operation)
        return name in ESSENTIAL or (name in METHODS and name not in self._lacking)

    @property
    def reports_state(self) -> bool:
        """True if the index has all attributes of a state; if not, only outcomes and files are compared."""
        return "state" not in self._lacking

    def perform(self, operation: Operation) -> Observation:
        """Execute an operation; see the protocol."""
        if self._failure is not None:
            return Observation(self._failure, None)
        outcome = self._outcome(operation)
        try:
            state = None if outcome.error == FAILURE or self._index is None else self._state()
        except Exception as error:  # noqa: BLE001 -- external code may raise anything
            outcome, state = _bug(error, "its state after " + str(operation)), None
        if outcome.error == FAILURE:
            self._failure = outcome
        return Observation(outcome, state)

    # -- operations --------------------------------------------------------------------------------------------

    def _outcome(self, operation: Operation) -> Outcome:
        name, arguments = operation
        try:
            if name == "open":
                self._open(*arguments)
                return OK
            if name == "crash":
                self._release()
                return OK
            if self._index is None:
                return Outcome("closed", None, "no index is open")
            method = getattr(self._index, METHODS[BULK.get(name, name)], None)
            if method is None:
                return UNSUPPORTED
            value = self._call(name, method, arguments)
            return OK if value is None else Outcome(None, value)
        except Exception as error:  # noqa: BLE001 -- as above
            kind = kind_of(error)
            return _bug(error, str(operation)) if kind is None else Outcome(kind, None, _text(kind, error))
        finally:
            if name in ("close", "delete"):
                self._closed = True

    def _open(self, kind: str, path: str, base_offset: int, max_index_size: int, writable: bool) -> None:
        self.end()
        self._kind = kind
        self._index = self._factory(
            kind, self._directory / path, base_offset, max_index_size, writable, **self._options
        )
        self._closed = False

    def _call(self, name: str, method: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Execute one operation, and check the type of its result."""
        if name in BULK:
            first, second, first_step, second_step, count = arguments
            for i in range(count):
                method(first + i * first_step, second + i * second_step)
            return None
        if name == "rename":
            arguments = (self._directory / arguments[0],)
        elif name == "append_aborted":
            arguments = (AbortedTxn(*arguments),)
        elif name == "fetch_upper_bound":
            arguments = (OffsetPosition(*arguments[:2]), arguments[2])
        value = method(*arguments)
        shape = SHAPES.get(name)
        return None if shape is None else shaped(shape, value)

    def _release(self) -> None:
        index, self._index = self._index, None
        if (close_handler := getattr(index, "close_handler", None)) is not None:
            close_handler()

    # -- state -------------------------------------------------------------------------------------------------

    def _state(self) -> State | None:
        if not self.reports_state:
            return None
        index = self._index
        try:
            if self._kind == "transaction":
                last = index.last_offset
                return State(integer(len(index)), None, None, None, () if last is None else (integer(last),))
            last = (integer(index.last_offset),) if self._kind == "offset" else shaped(pair, index.last_entry)
            full = shaped(flag, index.is_full)
            return State(integer(index.entries), integer(index.max_entries), full, integer(index.length), last)
        except AttributeError as error:
            if error.obj is not index:
                raise
            self._lacking.add("state")
            return None
        except Exception:
            if self._closed:
                return None
            raise


def _takes_release(factory: Factory) -> bool:
    try:
        return "release" in inspect.signature(factory).parameters
    except (TypeError, ValueError):  # some builtins have no signature
        return False


def _bug(error: Exception, where: str) -> Outcome:
    if isinstance(error, ShapeError):
        return Outcome(FAILURE, None, f"{error} (in {where})")
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename == __file__:
        frame = frame.tb_next  # omits the harness's own frames from the traceback
    trace = "".join(traceback.format_exception(type(error), error, frame)).rstrip()
    return Outcome(FAILURE, None, f"raised {type(error).__name__} in {where}:\n{trace}")


def _text(kind: str, error: Exception) -> str | None:
    return None if kind == "unsupported" else str(error) or None
