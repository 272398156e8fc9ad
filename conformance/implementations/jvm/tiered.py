"""Kafka's own log and ``RemoteLogManager`` of one release or build, over ``LocalTieredStorage``.

The storage is in a published test jar. A build has no such jar, and uses the one of the nearest release.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from conformance.errors import FetchError, NotDrivenError, ToolError
from conformance.implementations.jvm.classes import JvmClasses
from conformance.implementations.jvm.driver import compiled_against
from conformance.implementations.jvm.log import LOG_KIND_OF, of_settings
from conformance.implementations.jvm.step_batch import Requests, performed
from conformance.implementations.jvm.virtual_machine import build_loader, class_loader
from conformance.kafka.jar_fetch import class_path, moved_classes, storage_jar
from conformance.operations import Outcome
from conformance.operations.log import TOPIC_DIRECTORY
from conformance.operations.tiered import TIERED_ERROR_KINDS, TIERED_OPS, TieredObservation, TieredState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress

_OPERATIONS: Final = performed(TIERED_OPS)


def storage_of(release: str, jars: Sequence[Path]) -> tuple[Path, ...]:
    """Return what the machine needs in addition to the jars of a log: further jars, and a directory with our classes.

    Raises:
        ToolError: A jar cannot be fetched, or the classes do not fit.
    """
    further = storage_jar(release), *moved_classes(release)
    return *further, compiled_against([*jars, *further])


def tiered_jars(release: str) -> list[Path]:
    """Return the class path of a release's log, of its remote storage, and of our metadata manager.

    Raises:
        ToolError: A jar cannot be fetched.
    """
    jars = class_path(release, "log")
    return [*jars, *storage_of(release, jars)]


@cache
def _loader(release: str) -> Any:
    return class_loader(tiered_jars(release))


def _loader_of_build(build: Build) -> Any:
    """Return the class loader of a build, with the remote storage of the nearest published release.

    Raises:
        NotDrivenError: The build lacks a class or member.
    """
    try:
        return build_loader(build, storage_of(build.release, build.jars_without_logging))
    except FetchError:
        raise
    except ToolError as error:
        raise NotDrivenError(f"the build {build.text} does not fit LocalTieredStorage: {error}") from None


class JvmTiered(JvmClasses[TieredObservation]):
    """Tiered log of one release; the base class explains the attributes.

    Args:
        release: A release from 3.6.0 on.
        progress: A callback that is called while jars are downloaded.
        build: The build whose classes are used instead.
        loader: The loader of the classes; None for the shared one.
    """

    driver_name = "TieredDriver"
    group = "log"
    kind_of = LOG_KIND_OF | {"org.apache.kafka.server.log.remote.storage.RemoteStorageException": "remote"}
    error_kinds = TIERED_ERROR_KINDS
    operations = _OPERATIONS
    state = TieredState
    observation_type = TieredObservation
    reply_bytes = 1 << 20
    ignores_texts = True
    encode_step = Requests(_OPERATIONS, of_settings)

    def __init__(
        self, release: str, progress: Progress | None = None, build: Build | None = None, loader: Any = None
    ) -> None:
        if loader is None:
            loader = _loader(release) if build is None else _loader_of_build(build)
        super().__init__(release, progress, build, loader)

    def begin(self, directory: Path) -> None:
        """Begin an example; see the protocol."""
        super().begin(directory / TOPIC_DIRECTORY)

    def refusal(self, kind: str, text: str | None) -> Outcome:
        """Return the outcome of an exception; see the base class."""
        return Outcome(kind, None, text)
