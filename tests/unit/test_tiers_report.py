"""Report of brokers with tiered storage: counts of compared responses next to earlier results."""

from __future__ import annotations

from conformance.implementations.wire.contract import ListOffsetsContract
from conformance.implementations.wire.partition_history import PartitionHistory
from conformance.studies.study import Request
from conformance.studies.tiers.experiment import AnswerCounts
from conformance.studies.tiers.study import TIERS, Options

COUNTS = AnswerCounts(1234567, 9, 206, 20113, 16, {}, 363, 20000)
STARTS = Request(TIERS.machines, options=Options())
ANSWERS = Request(TIERS.machines, options=Options(answers=20000))
START = {"predicted": "starts", "happened": "starts", "as_predicted": True, "answers": "33 of 33", "error": ""}


def counts(release, **changes):
    return TIERS.row(release, COUNTS, None) | {"provenance": f"`conformance tiers --kafka {release}`"} | changes


EARLIER = [
    {
        "release": release,
        "provenance": "`conformance tiers`",
        "special": {"-1": "offset 72, timestamp -1"},
        "lookups": [33, 33],
        "skipped": {"answer": "offset 60", "expected": "offset 36"},
        "starts": [START | {"damage": name} for name in ("nothing", "a file README")],
        "answers": counts(release, answers=76),
    }
    for release in ("3.9.2", "4.3.1")
]


def test_counts_are_added_to_their_release():
    results = TIERS.merged(EARLIER, [counts("4.3.1")], ANSWERS)
    assert [each["release"] for each in results] == [each["release"] for each in EARLIER]
    assert [each["answers"]["answers"] for each in results] == [76, 20113]
    text = TIERS.page(results, "")
    assert text.startswith(TIERS.page(EARLIER, "").partition("The wire machine")[0].rstrip())
    (row,) = [line for line in text.splitlines() if line.startswith("| responses across tiers |")]
    assert " 20,113 |" in row
    assert "\n- `conformance tiers --kafka 4.3.1`\n" in text


def test_a_run_of_one_release_replaces_its_column():
    new = {key: value for key, value in EARLIER[0].items() if key != "answers"} | {"provenance": "`x`"}
    results = TIERS.merged(EARLIER, [new], STARTS)
    assert [each["release"] for each in results] == [each["release"] for each in EARLIER]
    assert (results[0]["answers"], results[0]["provenance"]) == (EARLIER[0]["answers"], "`x`")
    fewer = new | {"starts": new["starts"][:1]}
    assert TIERS.merged(EARLIER, [fewer], STARTS) == [fewer]  # a table has one row for each corruption


def test_a_divergence_is_named_with_its_number():
    signature = "LO-1: list_offsets -2: a record -> another record"
    diverging = counts("4.3.1", divergences={signature: 3})
    assert f"{signature} (3)" in TIERS.page([diverging], "")
    assert "divergences 0, seed 1234567" in TIERS.page([counts("4.3.1")], "")
    assert TIERS.comparison([counts("4.3.1")]).settle() == 0
    assert TIERS.comparison([diverging]).settle() == 1


def test_fewer_responses_than_requested_are_a_gap_and_none_is_nothing_compared():
    fewer = TIERS.comparison([counts("4.3.1", answers=19999)])
    assert fewer.gaps == ("1 of 20000 responses of Kafka 4.3.1 not compared (--max-time)",)
    assert TIERS.comparison([counts("4.3.1", answers=0)]).idle == ("Kafka 4.3.1: no response was compared",)


def test_version_0_depends_on_the_local_log_only_with_tiers():
    """LO-28."""
    tiered = ListOffsetsContract(PartitionHistory(0), is_partly_remote=True)
    assert tiered.depends_on_tiers(-2, 0)
    assert not tiered.depends_on_tiers(-2, 1)
    assert not ListOffsetsContract(PartitionHistory(0)).depends_on_tiers(-2, 0)
