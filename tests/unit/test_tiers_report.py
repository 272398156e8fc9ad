"""Report of brokers with tiered storage: counts of compared responses next to earlier results."""

from __future__ import annotations

from conformance.experiments.tiers.experiment import AnswerCounts
from conformance.experiments.tiers.table import counts_text, markdown, merged, page, with_counts
from conformance.implementations.wire.contract import ListOffsetsContract
from conformance.implementations.wire.partition_history import PartitionHistory

COUNTS = AnswerCounts("4.3.1", 1234567, 9, 206, 20113, 16, {}, 363.4)
START = {"predicted": "starts", "happened": "starts", "as_predicted": True, "answers": "33 of 33", "error": ""}
EARLIER = [
    {
        "release": release,
        "provenance": "`conformance tiers`",
        "special": {"-1": "offset 72, timestamp -1"},
        "lookups": [33, 33],
        "skipped": {"answer": "offset 60", "expected": "offset 36"},
        "starts": [START | {"damage": name} for name in ("nothing", "a file README")],
        "answers": COUNTS._replace(release=release, answers=76).to_json() | {"provenance": "`conformance tiers`"},
    }
    for release in ("3.9.2", "4.3.1")
]


def test_counts_are_added_to_their_release():
    results = with_counts(EARLIER, COUNTS, "`conformance tiers --kafka 4.3.1 --answers 20000 --seed 1234567`")
    assert [each["release"] for each in results] == [each["release"] for each in EARLIER]
    (found,) = (each["answers"] for each in results if each["release"] == "4.3.1")
    assert (found["answers"], found["seconds"]) == (20113, 363)
    text = markdown(results)
    assert text.startswith(markdown(EARLIER).partition("The wire machine")[0].rstrip())
    (row,) = [line for line in text.splitlines() if line.startswith("| responses across tiers |")]
    assert " 20,113 |" in row
    assert "\n- `conformance tiers --kafka 4.3.1 --answers 20000 --seed 1234567`\n" in text


def test_a_run_of_one_release_replaces_its_column_and_names_its_command():
    new = {key: value for key, value in EARLIER[0].items() if key != "answers"} | {
        "provenance": "`conformance tiers -x`"
    }
    results = merged(EARLIER, new)
    assert [each["release"] for each in results] == [each["release"] for each in EARLIER]
    assert results[0]["answers"] == EARLIER[0]["answers"]
    assert "\n- `conformance tiers -x`\n" in page(results)
    fewer = new | {"starts": new["starts"][:1]}
    assert merged(EARLIER, fewer) == [fewer]  # a table has one row for each corruption


def test_a_divergence_is_named_with_its_number():
    diverging = COUNTS._replace(divergences={"LO-1: list_offsets -2: a record -> another record": 3})
    assert "LO-1: list_offsets -2: a record -> another record (3)" in counts_text(diverging)
    assert "divergences 0, seed 1234567" in counts_text(COUNTS)


def test_version_0_depends_on_the_local_log_only_with_tiers():
    """LO-28."""
    tiered = ListOffsetsContract(PartitionHistory(0), is_partly_remote=True)
    assert tiered.depends_on_tiers(-2, 0)
    assert not tiered.depends_on_tiers(-2, 1)
    assert not ListOffsetsContract(PartitionHistory(0)).depends_on_tiers(-2, 0)
