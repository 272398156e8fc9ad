"""External Python classes (``python:MODULE:FACTORY``).

``FACTORY`` is called as ``factory(kind, path, base_offset, max_index_size, writable)`` and returns an index: an object
with the methods of :class:`PythonOffsetIndex`, :class:`PythonTimeIndex` or :class:`PythonTransactionIndex`, which are
those of kidx. If the factory has a parameter called ``release``, it gets the release to behave like. For a kind of
index that it does not have it raises ``NotImplementedError``. A method that an index does not have may do so too, or
be left out.

An index refuses by raising. Which exception is which error kind of the protocol, the first row that fits:

=============================================== ===================================================================
an exception with an attribute ``kind``         that kind; so those of :mod:`kidx.errors`, which one may simply raise
``NotImplementedError``                         the operation is unsupported
``OSError``                                     ``io``
``OverflowError``                               ``offset_overflow``
``IndexError``                                  ``out_of_bounds``
``BufferError``                                 ``buffer_overflow``
``ValueError``, but not ``UnicodeError``        ``invalid_argument``, as Java's ``IllegalArgumentException``
``RuntimeError``, but not ``RecursionError``    ``illegal_state``, as Java's ``IllegalStateException``
anything else                                   a ``failure``: a bug, shown with its traceback
=============================================== ===================================================================

So an offset out of order, a corrupt file, an unknown version, a read-only and a closed index *must* say their kind: in
Python all of these would be a ``ValueError``, as is ``mmap closed or invalid``, and the harness does not guess.
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
from conformance.implementations.methods import BULK, METHODS
from conformance.implementations.probe import missing_operations
from conformance.implementations.python import shapes
from conformance.implementations.python.shapes import SHAPES, ShapeError, flag, integer, pair, shaped
from conformance.implementations.replies import ESSENTIAL, FAILURE
from conformance.operations import ERROR_KINDS, KINDS, OK, UNSUPPORTED, Observation, Operation, Outcome, State
from kidx import AbortedTxn, OffsetPosition

Factory = Callable[..., Any]
_OWN: Final = (__file__, shapes.__file__)


class PythonIndex(Protocol):
    """What all three kinds have. Whatever a method without a result returns is ignored.

    Methods may be called on an index that is closed: Kafka answers some of them. ``close_handler`` is optional:
    it releases the file as a killed process does, without trimming or flushing. Without it the object is dropped.
    """

    def truncate_to(self, offset: int) -> None:
        """Removes what is at or beyond an offset."""

    def reset(self) -> None:
        """Removes everything."""

    def flush(self) -> None:
        """Writes to disk."""

    def sanity_check(self) -> None:
        """Raises an exception of kind ``corrupt`` if the file cannot be right."""

    def close(self) -> None:
        """Closes the file, as a clean shutdown does."""

    def delete_if_exists(self) -> bool:
        """Closes and deletes the file; whether there was one."""

    def rename_to(self, path: Path) -> None:
        """Moves the file; the index goes on under the new name."""


class PythonMappedIndex(PythonIndex, Protocol):
    """What an offset and a time index have in common. The four attributes may be properties."""

    entries: int
    max_entries: int
    is_full: bool
    length: int

    def lookup(self, target: int) -> tuple[int, int]:
        """The last entry whose key is at or below the target."""

    def entry(self, n: int) -> tuple[int, int]:
        """The entry in slot ``n``."""

    def truncate(self) -> None:
        """Removes all entries, leaving the file as long as it is."""

    def resize(self, size: int) -> bool:
        """Changes the length of the file; whether that was necessary."""

    def trim_to_valid_size(self) -> None:
        """Cuts the file behind the last entry."""


class PythonOffsetIndex(PythonMappedIndex, Protocol):
    """An offset index; its entries are (offset, position)."""

    last_offset: int

    def append(self, offset: int, position: int) -> None:
        """Adds an entry."""

    def fetch_upper_bound_offset(self, fetch_offset: OffsetPosition, fetch_size: int) -> tuple[int, int] | None:
        """The first entry at or behind ``fetch_offset.position + fetch_size``."""


class PythonTimeIndex(PythonMappedIndex, Protocol):
    """A time index; its entries are (timestamp, offset)."""

    last_entry: tuple[int, int]

    def maybe_append(self, timestamp: int, offset: int, skip_full_check: bool = False) -> None:
        """Adds an entry if its timestamp is larger than the last one."""


class PythonTransactionIndex(PythonIndex, Protocol):
    """A transaction index; ``max_index_size`` and ``writable`` mean nothing to it."""

    last_offset: int | None

    def __len__(self) -> int:
        """How many whole records there are."""

    def append(self, txn: AbortedTxn) -> None:
        """Adds a record: a tuple of producer id, first, last and last stable offset."""

    def all_aborted_txns(self) -> list[AbortedTxn]:
        """Every record."""

    def collect_aborted_txns(self, fetch_offset: int, upper_bound_offset: int) -> tuple[Any, bool]:
        """The transactions that a fetch has to hide, and whether no later segment can hold another one."""


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
    """The error kind of an exception, by the table above; None for a bug."""
    kind = getattr(error, "kind", None)
    if kind in ERROR_KINDS:
        return str(kind)
    return next((kind for builtin, kind in _KINDS_OF_BUILTINS if isinstance(error, builtin)), None)


def load_factory(module: str, name: str) -> Factory:
    """The factory called ``name`` (dots reach into classes) in a module; the working directory can be imported from.

    Raises:
        ToolError: the module cannot be imported, or has no such function.
    """
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise ToolError(f"the module {module} cannot be imported: {type(error).__name__}: {error}") from error
    try:
        found = operator.attrgetter(name)(found)
    except AttributeError:
        raise ToolError(f"the module {module} has no {name}") from None
    if not callable(found):
        raise ToolError(f"{module}:{name} is not a function or class but {type(found).__name__}")
    return found  # type: ignore[no-any-return]


class PythonObjectIndex:
    """A factory's indexes behind the adapter interface (see :class:`conformance.implementations.protocol`).

    An exception that is not a refusal, and a result of the wrong shape, are the outcome ``failure``, with the
    traceback or the result in its text; everything after it in the same example fails alike. The state of an
    observation is None where it is unknown: nothing is open, an attribute is missing, a closed index raises.

    Args:
        factory: see the module.
        release: the release whose dialect it must follow.
        name: its name in reports.
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
        self._lacking |= missing_operations(self, KINDS)

    def begin(self, directory: Path) -> None:
        """See the protocol."""
        self.end()
        self._directory = directory
        self._failure = None

    def end(self) -> None:
        """See the protocol. Ignores what the index raises when it is released."""
        with contextlib.suppress(Exception):
            self._let_go()

    def supports(self, operation: str) -> bool:
        """See the protocol. Every operation has been tried out when the implementation was made."""
        name = BULK.get(operation, operation)
        return name in ESSENTIAL or (name in METHODS and name not in self._lacking)

    @property
    def tells_state(self) -> bool:
        """Whether it has all attributes of a state; otherwise only outcomes and files are compared."""
        return "state" not in self._lacking

    def perform(self, operation: Operation) -> Observation:
        """See the protocol."""
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
                self._let_go()
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
        """One operation, its result checked for its shape."""
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

    def _let_go(self) -> None:
        index, self._index = self._index, None
        if (close_handler := getattr(index, "close_handler", None)) is not None:
            close_handler()

    # -- state -------------------------------------------------------------------------------------------------

    def _state(self) -> State | None:
        if not self.tells_state:
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
    while frame is not None and frame.tb_frame.f_code.co_filename in _OWN:
        frame = frame.tb_next  # leaves the harness's own frames out of the traceback
    trace = "".join(traceback.format_exception(type(error), error, frame)).rstrip()
    return Outcome(FAILURE, None, f"raised {type(error).__name__} in {where}:\n{trace}")


def _text(kind: str, error: Exception) -> str | None:
    return None if kind == "unsupported" else str(error) or None
