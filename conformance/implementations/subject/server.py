"""Third-party server, built if necessary, with a data directory if it persists records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from conformance.implementations.subject.build import build
from conformance.implementations.subject.process import ServerProcess
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from conformance.subjects import Subject


@contextmanager
def server_of(subject: Subject) -> Iterator[ServerProcess]:
    """Build the server if necessary; yield its process, not started. Process and data are removed after the block.

    Raises:
        ToolError: It cannot be built.
    """
    out = build(subject)
    with scratch_directory() as data:
        words = [word.replace("{out}", str(out)).replace("{data}", str(data)) for word in subject.start]
        with ServerProcess(f"the subject {subject.name}", words) as process:
            yield process
