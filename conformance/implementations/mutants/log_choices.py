"""Choices of segments and logs, see :mod:`conformance.implementations.mutants.choices`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from conformance.implementations.mutants.choices import choose, choose_defect
from conformance.implementations.mutants.registry import REFERENCES
from kidx.dialect import dialect_of, with_overrides

if TYPE_CHECKING:
    from collections.abc import Mapping


def _elsewhere(machine: str, behaviours: Mapping[str, object]) -> type:
    """Return a reference that behaves as in other releases in some rows of the table of behaviours."""

    class Elsewhere(REFERENCES[machine][0]):  # type: ignore[misc]
        def __init__(self, release: str) -> None:
            super().__init__(release)
            self.dialect = with_overrides(dialect_of(release), **behaviours)

    return Elsewhere


_ELSEWHERE: Final = {
    ("segment", "LZ-3a SEG-24a SEG-28a"): {"close_loads_indexes": False},
    ("segment", "LZ-3b SEG-24f SEG-28b"): {"close_loads_indexes": True},
    ("segment", "SEG-32a"): {"empty_transactions_complete": False},
    ("segment", "SEG-24c SEG-29"): {"close_finishes_segment": True},
    ("segment", "SEG-24d"): {"close_reports_errors": True},
    ("segment", "SEG-39"): {"recover_fences_markers": False},
    ("segment", "SEG-43"): {"markers_parsed_by_generated_code": False},
    ("segment", "SEG-44"): {"max_timestamp_may_look_unread": False},
    ("segment", "SEG-45"): {"truncation_reloads_in_two_steps": False},
    ("segment", "SEG-46"): {"truncated_records_are_null": False},
    ("segment", "SEG-48"): {"leaks_illegal_argument_for_size": False},
    ("segment", "SEG-49"): {"truncated_streams_are_invalid": False},
    ("log", "LG-8a"): {"idle_truncation_truncates_epochs": True},
    ("log", "LG-8b"): {"idle_truncation_truncates_epochs": False},
    ("log", "LG-10"): {"full_truncation_keeps_high_watermark": False},
    ("log", "LG-13a"): {"retention_starts_with_start_offset": True},
    ("log", "LG-13b"): {"retention_starts_with_start_offset": False},
    ("log", "LG-18a"): {"deleting_all_forgets_epochs": True},
    ("log", "LG-18b"): {"deleting_all_forgets_epochs": False},
    ("log", "LG-21"): {"search_start_survives_truncation": False},
}
"""Clauses about what Kafka does differently in other releases, and the behaviours of those."""

for (_machine, _clauses), _behaviours in _ELSEWHERE.items():
    for _clause in _clauses.split():
        _words = " and ".join(name.replace("_", " ") for name in _behaviours)
        _title = f"As in other releases: {_words}."
        _name = f"{_machine}-{_clause.lower()}-as-elsewhere"
        choose(_clause, _name, _title, _machine, partial(_elsewhere, _machine, _behaviours))

choose_defect("LG-98", "log", "result-ends-one-offset-later")
choose_defect("LG-100", "log", "duplicate-has-no-timestamp")
