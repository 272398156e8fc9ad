"""Errors: their texts, and errors that nobody knows."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from conformance.errors import ToolError
from conformance.experiments.release_diff.error_texts import differing_error_texts
from conformance.implementations.jvm.exceptions import unmapped_exception
from conformance.operations import Observation, Outcome
from conformance.operations.outcomes import FAILURE, OUT_OF_MEMORY
from kidx import OffsetIndex, TimeIndex, TransactionIndex, errors
from kidx.errors import KidxError
from kidx.index.transaction import AbortedTxn

# -- Errors: one class per way in which Kafka fails, each a subclass of the matching builtin exception -------------


BUILTINS = {
    errors.InvalidOffsetError: ("invalid_offset", ValueError),
    errors.IndexOffsetOverflowError: ("offset_overflow", OverflowError),
    errors.CorruptIndexError: ("corrupt", ValueError),
    errors.InvalidArgumentError: ("invalid_argument", ValueError),
    errors.IllegalStateError: ("illegal_state", RuntimeError),
    errors.UnsupportedVersionError: ("unsupported_version", ValueError),
    errors.ReadOnlyError: ("read_only", PermissionError),
    errors.ClosedError: ("closed", ValueError),
    errors.BufferOverflowError: ("buffer_overflow", BufferError),
    errors.OutOfBoundsError: ("out_of_bounds", IndexError),
}
EVERY = pytest.mark.parametrize("error", BUILTINS, ids=lambda error: error.__name__)


@EVERY
def test_each_class_is_its_builtin_and_a_kidx_error(error):
    """``except ValueError`` works without knowing kidx, ``except KidxError`` catches them all; kinds are words."""
    kind, builtin = BUILTINS[error]
    assert issubclass(error, builtin)
    assert issubclass(error, KidxError)
    assert error.kind == kind


def test_the_table_names_every_class():
    """A new error has to say which builtin it is."""
    defined = {value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, KidxError)}
    assert defined - {KidxError} == set(BUILTINS)
    assert len({kind for kind, _ in BUILTINS.values()}) == len(BUILTINS)


@EVERY
@pytest.mark.parametrize(("given", "kept"), [((), "what, where"), (("Kafka's",), "Kafka's"), ((None,), None)])
def test_a_message_and_the_text_of_kafka(error, given, kept):
    """The text defaults to the message; None says that Kafka's exception has none. Both survive a pickle (Spark)."""
    raised = error("what, where", *given)
    for each in (raised, pickle.loads(pickle.dumps(raised))):  # noqa: S301 -- our own bytes
        assert str(each) == "what, where"
        assert each.kafka_message == kept


def _full(directory):
    index = OffsetIndex(directory / "a", 0, 8)
    index.append(1, 1)
    index.append(2, 2)


def _out_of_order(directory):
    index = OffsetIndex(directory / "a", 0, 80)
    index.append(7, 1)
    index.append(5, 2)


def _overflow(directory):
    OffsetIndex(directory / "a", 100, 80).append(99, 0)


def _no_such_entry(directory):
    OffsetIndex(directory / "a", 0, 80).entry(3)


def _negative_entry(directory):
    OffsetIndex(directory / "a", 0, 80).entry(-3)


def _too_small(directory):
    OffsetIndex(directory / "a", 0, 7)


def _no_int(directory):
    OffsetIndex(directory / "a", 0, 80).append(1, 2**31)


def _cut_below_entries(directory):
    index = OffsetIndex(directory / "a", 0, 80)
    index.append(1, 1)
    index.append(2, 1)
    index.resize(8)


def _partial_entry(directory):
    (directory / "a").write_bytes(bytes(20))
    OffsetIndex(directory / "a", 0).sanity_check()


def _read_only(directory):
    (directory / "a").write_bytes(bytes(16))
    index = OffsetIndex(directory / "a", 0, writable=False)
    index.truncate()
    index.append(5, 1)


def _closed(directory):
    index = OffsetIndex(directory / "a", 0, 80)
    index.close()
    index.lookup(5)


def _no_room(directory):
    index = TimeIndex(directory / "a", 0, 12)
    index.maybe_append(1, 1, skip_full_check=True)
    index.maybe_append(2, 2, skip_full_check=True)


def _earlier(directory):
    index = TimeIndex(directory / "a", 0, 120)
    index.maybe_append(7, 1)
    index.maybe_append(6, 1)


def _version(directory):
    (directory / "a").write_bytes(b"\x01" + bytes(33))
    TransactionIndex(0, directory / "a").all_aborted_txns()


def _before_start(directory):
    index = TransactionIndex(9, directory / "a")
    index.append(AbortedTxn(1, 2, 3, 4))
    index.sanity_check()


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (_full, errors.InvalidArgumentError, ("full", "1 of 1", "2 cannot")),
        (_out_of_order, errors.InvalidOffsetError, ("offset 5", "last offset 7")),
        (_overflow, errors.IndexOffsetOverflowError, ("offset 99", f"100..{100 + 2**31 - 1}")),
        (_no_such_entry, errors.InvalidArgumentError, ("0 entries", "entry 3")),
        (_negative_entry, errors.OutOfBoundsError, ("at -24", "0..80")),
        (_too_small, errors.InvalidArgumentError, ("7 bytes", "of 8")),
        (_no_int, errors.InvalidArgumentError, (f"position {2**31}", f"{-(2**31)}..{2**31 - 1}")),
        (_cut_below_entries, errors.InvalidArgumentError, ("2 entries", "16 bytes", "in 8")),
        (_partial_entry, errors.CorruptIndexError, ("20 bytes", "multiple of 8")),
        (_read_only, errors.ReadOnlyError, ("read-only", "5 cannot")),
        (_closed, errors.ClosedError, ("closed",)),
        (_no_room, errors.BufferOverflowError, ("2 takes 8 bytes at 12", "in 12")),
        (_earlier, errors.IllegalStateError, ("timestamp 6", "last timestamp 7")),
        (_version, errors.UnsupportedVersionError, ("version 256", "reads only version 0")),
        (_before_start, errors.CorruptIndexError, ("last_offset=3", "start offset 9")),
    ],
)
def test_a_message_names_the_file_the_value_and_the_limit(act, error, words, tmp_path):
    """One line names the file, the requested value and the limit."""
    with pytest.raises(error) as refusal:
        act(tmp_path)
    assert type(refusal.value) is error
    for word in (str(tmp_path / "a"), *words):
        assert word in str(refusal.value)


def test_a_message_names_the_file_where_it_is_now(tmp_path):
    """After a move (Kafka renames an index to .deleted) errors of the mapping name the new place as well (AI-21)."""
    with OffsetIndex(tmp_path / "a", 0, 80) as index:
        index.rename_to(tmp_path / "a.deleted")
        with pytest.raises(errors.OutOfBoundsError, match=r"/a\.deleted: 8 bytes at -8"):
            index.entry(-1)


# -- Comparison of the error texts of two releases -----------------------------------------------------------------


OLD, NEW = Path("/old/0"), Path("/new/1")
SEGMENT = (
    "Existing segment is Optional[LogSegment(baseOffset=0, size={}, lastModifiedTime={}, largestRecordTimestamp=9)]"
)


def said(text):
    return Observation(Outcome("kafka", None, text), None)


@pytest.mark.parametrize(
    ("old", "new", "differ"),
    [
        (f"{OLD}/0.index is full", f"{NEW}/0.index is full", False),
        (SEGMENT.format(272, 1763822430000), SEGMENT.format(272, 1763822431007), False),
        (SEGMENT.format(272, 1763822430000), SEGMENT.format(136, 1763822431007), True),
        ("8192 bytes missing", "4096 bytes missing", True),
    ],
)
def test_differences_beyond_file_names_and_times(old, new, differ):
    wording = differing_error_texts(said(old), said(new), OLD, NEW)
    assert (wording is not None) is differ


# -- Java exceptions without an error kind -------------------------------------------------------------------------


THROWN = "java.util.NoSuchElementException: No value present"


def test_an_unknown_exception_is_a_failure_with_a_trace():
    assert unmapped_exception("jvm 4.3.1", THROWN) == Outcome(FAILURE, None, THROWN)


def test_memory_and_classes_are_known():
    assert unmapped_exception("x", "java.lang.OutOfMemoryError: Java heap space").error == OUT_OF_MEMORY
    with pytest.raises(ToolError, match=r"not complete; add the jar that contains org\.slf4j\.Logger"):
        unmapped_exception("x", "java.lang.NoClassDefFoundError: org/slf4j/Logger")
