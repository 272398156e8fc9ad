"""Exceptions, one for each kind of error in Kafka.

Every class derives from the builtin that a Python programmer would catch anyway, so ``except ValueError`` around an
append works without knowing this module. ``kind`` is the word for the error in conformance's protocol, traces and
reports. Ids such as OI-3 name clauses: the numbered requirements in ``conformance/clauses``.

``str(error)`` names the file, the value and the limit. ``error.kafka_message`` is the text of Kafka's exception in the
dialect's release, letter for letter; None if Kafka's exception has no text.
"""

from __future__ import annotations

from typing import ClassVar


class KidxError(Exception):
    """Base class of all exceptions that kidx raises deliberately.

    Args:
        message: description with the file, the value and the limit.
        kafka_message: text of Kafka's own exception in the dialect's release; defaults to ``message``.
    """

    kind: ClassVar[str] = "error"

    def __init__(self, message: str, kafka_message: str | None = "") -> None:
        super().__init__(message)
        self.kafka_message: str | None = message if kafka_message == "" else kafka_message


class InvalidOffsetError(KidxError, ValueError):
    """An offset does not follow the last one (``o.a.k.common.errors.InvalidOffsetException``; OI-3, TI-3)."""

    kind = "invalid_offset"


class IndexOffsetOverflowError(KidxError, OverflowError):
    """An offset is not ``base .. base + 2**31 - 1`` (``IndexOffsetOverflowException``; AI-8)."""

    kind = "offset_overflow"


class CorruptIndexError(KidxError, ValueError):
    """``sanity_check`` rejects the file (``CorruptIndexException``; OI-11, TI-11, TX-12)."""

    kind = "corrupt"


class InvalidArgumentError(KidxError, ValueError):
    """A full index, a slot past the end, an impossible size (``java.lang.IllegalArgumentException``)."""

    kind = "invalid_argument"


class IllegalStateError(KidxError, RuntimeError):
    """A timestamp that goes back, a position that does not fit (``java.lang.IllegalStateException``; TI-3, OI-6)."""

    kind = "illegal_state"


class UnsupportedVersionError(KidxError, ValueError):
    """An aborted transaction of a version this dialect cannot read (``KafkaException``; TX-7)."""

    kind = "unsupported_version"


class ReadOnlyError(KidxError, PermissionError):
    """A write to a file mapped read-only (``java.nio.ReadOnlyBufferException``; OI-13)."""

    kind = "read_only"


class ClosedError(KidxError, ValueError):
    """The index is unmapped (``java.lang.NullPointerException`` in Kafka; AI-19)."""

    kind = "closed"


class BufferOverflowError(KidxError, BufferError):
    """No space left in the mapped file (``java.nio.BufferOverflowException``; TI-5)."""

    kind = "buffer_overflow"


class OutOfBoundsError(KidxError, IndexError):
    """A slot outside the mapped file (``java.lang.IndexOutOfBoundsException``; OI-8)."""

    kind = "out_of_bounds"


class ToolError(Exception):
    """The work could not be done; the message is one line that can be printed unchanged."""

    exit_code: ClassVar[int] = 2
    """Exit code of a command that ends with this error."""

    def __init__(self, message: str) -> None:
        # Causes such as HTTP errors contain line breaks, but the message must be one line.
        super().__init__(" ".join(message.split()))
