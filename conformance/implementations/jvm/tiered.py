"""Kafka's own log and ``RemoteLogManager`` of one release, over ``LocalTieredStorage`` of its published test jar."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from conformance.errors import NotDrivenError
from conformance.implementations.jvm.classes import JvmClasses
from conformance.implementations.jvm.driver import compiled_against
from conformance.implementations.jvm.log import LOG_KIND_OF, of_settings
from conformance.implementations.jvm.step_batch import Requests, performed
from conformance.implementations.jvm.virtual_machine import class_loader
from conformance.kafka.jar_fetch import class_path, moved_classes, storage_jar
from conformance.operations import Outcome
from conformance.operations.log import TOPIC_DIRECTORY
from conformance.operations.tiered import TIERED_ERROR_KINDS, TIERED_OPS, TieredObservation, TieredState

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress

_OPERATIONS: Final = performed(TIERED_OPS)


def tiered_jars(release: str) -> list[Path]:
    """Return the class path of a release's log and ``LocalTieredStorage``.

    Raises:
        ToolError: A jar cannot be fetched.
    """
    return [*class_path(release, "log"), storage_jar(release), *moved_classes(release)]


@cache
def _loader(release: str) -> Any:
    """Return the class loader of a release, of its remote storage, and of our metadata manager."""
    jars = tiered_jars(release)
    return class_loader([*jars, compiled_against(jars)])


class JvmTiered(JvmClasses[TieredObservation]):
    """Tiered log of one release; the base class explains the attributes.

    Args:
        release: A release from 3.6.0 on.
        progress: A callback that is called while jars are downloaded.
        build: None.

    Raises:
        NotDrivenError: There is a build.
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

    def __init__(self, release: str, progress: Progress | None = None, build: Build | None = None) -> None:
        if build is not None:
            raise NotDrivenError("the tiered machine does not support jvm:DIR: a build has no LocalTieredStorage")
        super().__init__(release, progress, loader=_loader(release))

    def begin(self, directory: Path) -> None:
        """Begin an example; see the protocol."""
        super().begin(directory / TOPIC_DIRECTORY)

    def refusal(self, kind: str, text: str | None) -> Outcome:
        """Return the outcome of an exception; see the base class."""
        return Outcome(kind, None, text)
