"""Compiled crates of Rust, which the tests share."""

from __future__ import annotations

from conformance.kafka.cache import cache_directory

COMPILED = cache_directory() / "cargo"
"""Target directory of cargo: krabka-log's program and the tests of its findings compile the same crates."""
