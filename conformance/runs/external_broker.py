"""``-i broker --bootstrap-server``: a check of a broker that is already running, as one result of a run."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.clauses import load_clauses
from conformance.events import Diverged, Result
from conformance.kafka.broker.external import ExternalBroker, check_external
from conformance.runs.divergence_event import requirements_of

if TYPE_CHECKING:
    from conformance.events import Sink, Verdict
    from conformance.kafka.broker.external import Mismatch
    from conformance.kafka.jar_fetch import Progress

MACHINE: Final = "attached"
"""The name of this check in events, where other checks have the name of their machine."""
_LOOKUPS: Final = "LO-6"
"""The id of the clause about ListOffsets with a timestamp, which every check exercises."""


@dataclass(frozen=True, slots=True)
class ExternalBrokerAddress:
    """Running broker that the harness did not start.

    Attributes:
        bootstrap: Address of the broker, ``HOST:PORT``.
        log_dir: One of the broker's log directories.
    """

    bootstrap: str
    log_dir: Path

    def open(self, release: str, progress: Progress | None = None) -> ExternalBroker:
        """Connect to the broker.

        Raises:
            ToolError: The broker does not respond, has another release, or its log directory cannot be read.
        """
        return ExternalBroker(self.bootstrap, self.log_dir, release, progress=progress)


def check_external_broker(
    attachment: ExternalBrokerAddress, release: str, sink: Sink, progress: Progress | None = None
) -> Result:
    """Check a running broker, which is only queried and whose files are only read.

    Raises:
        ToolError: The broker does not respond, has another release, or does not use the log directory.
    """
    started = time.monotonic()
    with attachment.open(release, progress) as broker:
        checked = check_external(broker)
    for mismatch in checked.mismatches:
        sink(_diverged(mismatch, attachment, release))
    verdicts: dict[str, Verdict] = {_LOOKUPS: "conforms" if checked.answers else "not-run"}
    for mismatch in checked.mismatches:
        if mismatch.clause in load_clauses():
            verdicts[mismatch.clause] = "diverges"
    result = Result(
        MACHINE,
        "broker",
        release,
        checked.partitions,
        checked.answers,
        time.monotonic() - started,
        len(checked.mismatches),
        {_LOOKUPS: checked.answers},
        verdicts,
        {
            "backend": attachment.bootstrap,
            "log_dir": str(attachment.log_dir),
            "index_files": checked.index_files,
            "left_out": checked.skipped,
        },
    )
    sink(result)
    return result


def _diverged(mismatch: Mismatch, attachment: ExternalBrokerAddress, release: str) -> Diverged:
    """Return the event of a mismatch, which has no trace."""
    failure = {
        "step": -1,
        "participant": f"broker at {attachment.bootstrap}",
        "release": release,
        "against": "kidx",
        "aspects": ["outcome"],
        "expected": mismatch.expected,
        "actual": mismatch.actual,
        "clauses": [mismatch.clause],
    }
    return Diverged(
        MACHINE,
        failure,
        requirements_of(filter(load_clauses().__contains__, (mismatch.clause,))),
        (mismatch.subject,),
        "",
        f"conformance run --bootstrap-server {attachment.bootstrap} --log-dir {attachment.log_dir} --kafka {release}",
    )
