"""kidx's log for the line protocol, version 2: an example of a log in Python, and the base of planted defects.

    conformance run -i "exec:python tests/adapters/line_log.py {release}" --machine log

Arguments: the release; then ``--without CAPABILITY`` for each missing capability, ``--hidden FIELD`` for each field
that its state omits, ``--defect NAME`` for one of ``log_defects``.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
from pathlib import Path
from typing import Any

from kidx.errors import KidxError
from kidx.log import LogConfig, UnifiedLog

Json = dict[str, Any]
CAPABILITIES = (
    "segments",
    "validation",
    "whole_calls",
    "start_checkpoint",
    "compression",
    "clock",
    "clean_flag",
    "recovery_point",
    "epochs",
    "producers",
    "transactions",
    "preallocation",
    "deferred_deletion",
    "append_results",
    "epoch_ends",
    "time_lookups",
)
SAME_KIND = {
    "unsupported_version": "kafka",
    "io": "kafka",
}


class Adapter:
    """Adapter for one log."""

    log_class: type[UnifiedLog] = UnifiedLog

    def __init__(self, release: str, without: tuple[str, ...] = (), hidden: tuple[str, ...] = ()) -> None:
        self.release = release
        self.without = without
        self.hidden = hidden
        self.now = 0
        self.log: Any = None

    def run(self) -> None:
        for line in sys.stdin:
            request = json.loads(line)
            operation = request.pop("op")
            sys.stdout.write(json.dumps(self.reply_to(operation, request)) + "\n")
            sys.stdout.flush()
            if operation == "stop":
                break

    def reply_to(self, operation: str, request: Json) -> Json:
        method = getattr(self, f"do_{operation}", None)
        if method is None:
            return {"unsupported": True}
        try:
            return {"ok": method(**request)}
        except KidxError as error:
            return {"error": SAME_KIND.get(error.kind, error.kind), "message": str(error)}
        except OSError as error:
            return {"error": "io", "message": str(error)}

    def do_start(self, protocol: int) -> Json:  # noqa: ARG002
        able = [name for name in CAPABILITIES if name not in self.without]
        about = {"name": "line-log", "version": "1.0", "language": "python", "kinds": ["log"]}
        return {**about, "capabilities": able}

    def do_open_log(
        self, path: str, settings: Json, log_start_offset: int, recovery_point: int, clean: bool, now: int
    ) -> None:
        self.now = now
        self.log = None
        self.log = self.log_class(
            Path(path),
            LogConfig.of_topic(settings),
            log_start_offset=log_start_offset,
            recovery_point=0 if "recovery_point" in self.without else recovery_point,
            clean=clean and "clean_flag" not in self.without,
            clock=lambda: self.now,
            dialect=self.release,
        )
        self.tidy()

    def tidy(self) -> None:
        """Run all deferred work."""
        if "deferred_deletion" in self.without:
            self.log.delete_segments_before_start()

    def do_append(self, role: str, batches: str, leader_epoch: int, coordinator: bool) -> list[int] | None:
        data = base64.b64decode(batches)
        if role == "leader":
            result = self.log.append_as_leader(data, leader_epoch, from_client=not coordinator)
        else:
            result = self.log.append_as_follower(data, leader_epoch)
        if "append_results" in self.without:
            return None
        return list(result if self.release >= "2.8.0" else result._replace(leader_epoch=-1))

    def do_end_offset_for_epoch(self, epoch: int) -> tuple[int, int] | None:
        return self.log.end_offset_for_epoch(epoch)

    def do_roll(self) -> None:
        self.log.roll()

    def do_truncate(self, offset: int) -> bool:
        return self.log.truncate_to(offset)

    def do_truncate_fully(self, offset: int) -> None:
        self.log.truncate_fully_and_start_at(offset)

    def do_delete_records(self, offset: int) -> None:
        self.log.delete_records(offset)
        self.tidy()

    def do_retention(self) -> int:
        return self.log.delete_old_segments()

    def do_high_watermark(self, offset: int) -> int:
        return self.log.update_high_watermark(offset)

    def do_assign_epoch(self, epoch: int, start_offset: int) -> None:
        self.log.assign_epoch_start_offset(epoch, start_offset)

    def do_set_clock(self, now: int) -> None:
        self.now = now

    def do_expire_producers(self) -> None:
        self.log.expire_producers()

    def do_list_offsets(self, targets: list[int]) -> list[Any]:
        return [self.answer(target) for target in targets]

    def answer(self, target: int) -> list[int] | None:
        if "time_lookups" in self.without and (target >= 0 or target == -3):
            return None
        found = self.log.fetch_offset_by_timestamp(target)
        if found is None:
            return None
        epoch = -1 if found.leader_epoch is None or "epochs" in self.without else found.leader_epoch
        return [found.timestamp, found.offset, epoch]

    def do_read(self, offset: int, max_bytes: int) -> str:  # noqa: ARG002
        log = self.log
        if offset == log.end_offset and (offset >= log.start_offset or log.dialect.reads_end_below_start):
            return ""
        if not log.start_offset <= offset < log.end_offset:
            raise OutOfRangeError(f"{offset} is not in the log")
        for segment in log.segments.values_from(offset):
            found = segment.translate_offset(offset)
            if found is not None:
                return base64.b64encode(next(segment.batches(found.position)).to_bytes()).decode()
        return ""

    def do_close(self, prepared: bool) -> None:
        self.log.close(prepare=prepared)  # after an error the log is still queried
        self.log = None

    def do_stop(self) -> None:
        pass

    def do_state(self) -> Json:
        log, producers = self.log, self.log.producers
        state = {
            "start_offset": log.start_offset,
            "end_offset": log.end_offset,
            "high_watermark": log.high_watermark,
            "last_stable_offset": log.last_stable_offset,
            "recovery_point": log.recovery_point,
            "segments": [[segment.base_offset, segment.size] for segment in log.segments],
            "producers_end": producers.map_end_offset,
            "ongoing": sorted(producers.ongoing),
            "unreplicated": sorted(producers.unreplicated),
            "producers": [self.producer(producer) for producer in sorted(producers.producers)],
        }
        return {name: value for name, value in state.items() if name not in self.hidden}

    def producer(self, producer: int) -> list[Any]:
        entry = self.log.producers.producers[producer]
        began = entry.current_txn_first_offset
        last = self.log.producers.last_timestamp(entry)
        batches = [list(batch) for batch in entry.batches]
        return [producer, entry.producer_epoch, entry.coordinator_epoch, last, -1 if began is None else began, batches]


class OutOfRangeError(KidxError):
    """Offset outside the log."""

    kind = "out_of_range"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("release")
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--hidden", action="append", default=[])
    parser.add_argument("--defect")
    options = parser.parse_args()
    adapter = Adapter
    if options.defect:
        from log_defects import DEFECTS

        adapter = DEFECTS[options.defect]
    adapter(options.release, tuple(options.without), tuple(options.hidden)).run()


if __name__ == "__main__":
    main()
