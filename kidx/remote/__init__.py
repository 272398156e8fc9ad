"""Tiered storage: the cache of index files that a broker fetches from remote storage (KIP-405; clauses RC)."""

from kidx.remote.cache import RemoteIndexCache
from kidx.remote.entry import CacheEntry
from kidx.remote.errors import CacheError, RemoteResourceNotFoundError, RemoteStorageError
from kidx.remote.names import DIRECTORY, KINDS, RemoteSegment, id_from_text, text_of_id
from kidx.remote.storage import RemoteStorage

__all__ = [
    "DIRECTORY",
    "KINDS",
    "CacheEntry",
    "CacheError",
    "RemoteIndexCache",
    "RemoteResourceNotFoundError",
    "RemoteSegment",
    "RemoteStorage",
    "RemoteStorageError",
    "id_from_text",
    "text_of_id",
]
