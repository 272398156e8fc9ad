"""Tiered storage: the cache of index files that a broker fetches from remote storage (KIP-405; clauses RC)."""

from kidx.remote.cache import RemoteIndexCache, RemoteStorage
from kidx.remote.entry import DIRECTORY, KINDS, CacheEntry, RemoteSegment, id_from_text, text_of_id
from kidx.remote.errors import CacheError, RemoteResourceNotFoundError, RemoteStorageError

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
