"""File of a power failure: the operations before it, the losses, and the restart of the broker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.errors import ToolError
from conformance.experiments.json_file import save_json
from conformance.experiments.power_loss.compaction import is_compacted
from conformance.experiments.power_loss.disk import Item, Length, Name, Page
from conformance.experiments.power_loss.failures import CrashPoint, Failure, Restart, crash_points
from conformance.experiments.power_loss.guarantees import Guarantee
from conformance.experiments.power_loss.signatures import Finding, signature_of
from conformance.operations import Json, Operation
from conformance.operations.log import TOPIC_DIRECTORY
from conformance.operations.trace import Trace

if TYPE_CHECKING:
    from conformance.experiments.power_loss.histories import Recorder

FORMAT: Final = "kidx-power-loss"
VERSION: Final = 1
_EVERYTHING: Final = 1 << 40
"""Offset after all records."""
_MEMBERS: Final[dict[str, type | tuple[type, ...]]] = {
    "release": str,
    "steps": list,
    "event": int,
    "lost": list,
    "restart": dict,
    "promise": (str, type(None)),
}


def document(finding: Finding) -> Json:
    """Return the content of the file for a finding."""
    failure, disk = finding.failure, finding.failure.crash_point.disk
    options = disk.options()
    lost = []
    for item, value in failure.loss.items():
        told: Json = {"what": disk.described(item, value)}
        match item:
            case Name(number):
                told["name"] = number
            case Length(file):
                told |= {"file": file, "length": value}
            case Page(file, number):
                known = value in options[item]
                told |= {"file": file, "page": number}
                told["content"] = options[item].index(value) if known else bytes(value).hex()  # type: ignore[arg-type]
        lost.append(told)
    return {
        "format": FORMAT,
        "version": VERSION,
        "release": finding.history.release,
        "promise": finding.signature.guarantee and finding.signature.guarantee.name,
        "shows": finding.text,
        "restart": failure.restart._asdict(),
        "event": disk.event,
        "lost": lost,
        "steps": [operation.to_json() for operation in finding.history.operations],
    }


def save(finding: Finding, directory: Path) -> Path:
    """Write the file, and return its path.

    Raises:
        ToolError: the directory cannot be written.
    """
    return save_json(document(finding), directory, "power-loss", "power failure")


def of_crash_state(finding: Finding) -> Trace:
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


def load(path: Path) -> Json:
    """Return the content of a file.

    Raises:
        ToolError: it cannot be read, or is not a power failure of this version.
    """
    try:
        found = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ToolError(f"cannot read the trace {path} of a power failure: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ToolError(f"the trace {path} of a power failure is not JSON: {error}") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT or found.get("version") != VERSION:
        raise ToolError(f"{path} is not a trace of a power failure of version {VERSION}")
    for member, kind in _MEMBERS.items():
        if member not in found or not isinstance(found[member], kind):
            raise ToolError(f"the trace {path} of a power failure has no {member} of the right type")
    return found


def performed(told: Json, recorder: Recorder) -> Finding:
    """Execute the operations of a file again, and return its power failure, with an empty text.

    Raises:
        ToolError: the operations cannot be executed, or do not cause the same writes and syncs.
    """
    try:
        history = recorder.perform([Operation.from_json(step) for step in told["steps"]])
        crash_point = next(each for each in crash_points(history) if each.disk.event == told["event"])
        loss = dict(_item(each, crash_point) for each in told["lost"])
        failure = Failure(crash_point, loss, Restart(**told["restart"]))
        guarantee = None if told["promise"] is None else Guarantee[told["promise"]]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, StopIteration) as error:
        reason = str(error) or "a different number of writes and syncs"
        raise ToolError(f"Kafka {recorder.release} cannot replay the power failure: {reason}") from error
    return Finding(signature_of(history, failure, guarantee), history, failure, "")


def _item(told: Json, crash_point: CrashPoint) -> tuple[Item, bytes | int | None]:
    disk = crash_point.disk
    if "name" in told:
        disk.changes[told["name"]]
        return Name(told["name"]), None
    if "length" in told:
        if told["file"] not in disk.files:
            raise ValueError(f"the recorded run has no file {told['file']}")
        return Length(told["file"]), int(told["length"])
    page = Page(told["file"], told["page"])
    content: Any = told["content"]
    value = bytes.fromhex(content) if isinstance(content, str) else disk.options()[page][content]
    return page, value
