"""File of a power failure: the operations before it, the losses, and the restart of the broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from conformance.errors import ToolError
from conformance.operations import Operation
from conformance.operations.log import TOPIC_DIRECTORY
from conformance.operations.trace import Trace
from conformance.studies.power_loss.compaction import is_compacted
from conformance.studies.power_loss.disk import Disk, Item, Length, Name, Page
from conformance.studies.power_loss.failures import Failure, Restart, crash_points
from conformance.studies.power_loss.guarantees import Guarantee
from conformance.studies.power_loss.signatures import Finding, signature_of

if TYPE_CHECKING:
    from conformance.studies.power_loss.histories import History, Recorder

_EVERYTHING: Final = 1 << 40
"""Offset after all records."""


class Lost(msgspec.Struct, frozen=True):
    """Lost item: a name, or the length or a page of a file.

    Attributes:
        what: description.
        name: number of the change of a name.
        content: number of the page's content among those that it may have, or the content as hexadecimal digits.
    """

    what: str
    name: int | UnsetType = UNSET
    file: int | UnsetType = UNSET
    length: int | UnsetType = UNSET
    page: int | UnsetType = UNSET
    content: int | str | UnsetType = UNSET


class PowerFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Content of the file.

    Attributes:
        promise: name of the violated guarantee; None if kidx diverges.
        shows: evidence.
        event: number of writes, renames and syncs before the failure.
        lost: what is lost.
        steps: operations before the failure.
    """

    format: Literal["kidx-power-loss"] = "kidx-power-loss"
    version: Literal[1] = 1
    release: str
    promise: str | None
    shows: str = ""
    restart: Restart
    event: int
    lost: tuple[Lost, ...]
    steps: tuple[dict[str, Any], ...]


def document(finding: Finding[History]) -> PowerFailure:
    """Return the content of the file for a finding."""
    failure, disk = finding.failure, finding.failure.crash_point.disk
    options = disk.options()
    lost = []
    for item, value in failure.loss.items():
        what = disk.described(item, value)
        match item:
            case Name(number):
                lost.append(Lost(what, name=number))
            case Length(file):
                lost.append(Lost(what, file=file, length=value))  # type: ignore[arg-type]
            case Page(file, number):
                content: Any = options[item].index(value) if value in options[item] else bytes(value).hex()  # type: ignore[arg-type]
                lost.append(Lost(what, file=file, page=number, content=content))
    return PowerFailure(
        release=finding.history.release,
        promise=finding.signature.guarantee and finding.signature.guarantee.name,
        shows=finding.text,
        restart=failure.restart,
        event=disk.event,
        lost=tuple(lost),
        steps=tuple(operation.to_json() for operation in finding.history.operations),
    )


def of_crash_state(finding: Finding[History]) -> Trace:
    """Return a trace of the log machine that writes the remaining files, opens the log, and looks up offsets."""
    failure, history = finding.failure, finding.history
    opening = failure.opening(history)
    settings, *_, now = opening.args
    written = [
        Operation("damage_log_file", (name, "write_file", [content.hex()]))
        for name, content in sorted(failure.files().items())
    ]
    first = Operation("open_log", (settings, 0, 0, True, now))
    title = f"{TOPIC_DIRECTORY} after a power failure: {finding.text}"
    asked = [Operation("list_offsets", ([-1, -2, -3],))]
    if is_compacted(settings):
        asked.append(Operation("update_high_watermark", (_EVERYTHING,)))
        asked.append(Operation("clean_log", (failure.restart.cleaned_to, 4096, 50, 0)))
    operations = (first, Operation("crash_log"), *written, opening, *asked)
    return Trace("cleaned" if is_compacted(settings) else "log", history.release, operations, title=title)


def performed(told: PowerFailure, recorder: Recorder) -> Finding[History]:
    """Execute the operations of a file again, and return its power failure, with an empty text.

    Raises:
        ToolError: the operations cannot be executed, or do not cause the same writes and syncs.
    """
    try:
        history = recorder.perform([Operation.from_json(step) for step in told.steps])
        crash_point = next(each for each in crash_points(history) if each.disk.event == told.event)
        loss = dict(_item(each, crash_point.disk) for each in told.lost)
        failure = Failure(crash_point, loss, told.restart)
        guarantee = None if told.promise is None else Guarantee[told.promise]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, StopIteration) as error:
        reason = str(error) or "a different number of writes and syncs"
        raise ToolError(f"Kafka {recorder.release} cannot replay the power failure: {reason}") from error
    return Finding(signature_of(history, failure, guarantee), history, failure, "")


def _item(lost: Lost, disk: Disk) -> tuple[Item, bytes | int | None]:
    if lost.name is not UNSET:
        disk.changes[lost.name]
        return Name(lost.name), None
    if lost.file is UNSET or lost.file not in disk.files:
        raise ValueError(f"the recorded run has no file {lost.file}")
    if lost.length is not UNSET:
        return Length(lost.file), lost.length
    if lost.page is UNSET or lost.content is UNSET:
        raise ValueError("a loss is neither a name, nor a length, nor a page")
    page, content = Page(lost.file, lost.page), lost.content
    return page, bytes.fromhex(content) if isinstance(content, str) else disk.options()[page][content]
