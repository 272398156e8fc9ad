"""Errors of the cache and of remote storage."""

from __future__ import annotations

from kidx.errors import InvalidArgumentError, KidxError


class CacheError(KidxError, RuntimeError):
    """Failed file operation or fetch (``o.a.k.common.KafkaException`` around the cause)."""

    kind = "kafka"


class InvalidNumberError(InvalidArgumentError):
    """File name that does not begin with a 64-bit number (``java.lang.NumberFormatException``)."""

    kind = "invalid_number"


class RemoteStorageError(KidxError, RuntimeError):
    """Failure of remote storage (``RemoteStorageException``)."""

    kind = "remote"


class RemoteResourceNotFoundError(RemoteStorageError):
    """Resource that remote storage does not have (``RemoteResourceNotFoundException``)."""
