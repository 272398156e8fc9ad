"""Options of ``kafka_segments``, as in Spark's Kafka source: names, precedence, and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kidx.errors import ToolError
from kidx.spark.source import KafkaSegmentsSource
from kidx.tables.choosing import chosen_partitions
from kidx.tables.indexes import Counter
from kidx.tables.offsets import range_of
from kidx.tables.options import Bound, read_options
from kidx.tables.predicates import Predicates
from kidx.tables.segments import TopicPartition, find_partitions
from kidx.tables.splits import plan_splits

GOLDEN = Path(__file__).parents[1] / "golden" / "3.9.2"
KEY = TopicPartition("restarted", 0)


def options(**given):
    return read_options({"path": str(GOLDEN)} | {name: str(value) for name, value in given.items()})


def of_key(value):
    return json.dumps({KEY.topic: {"0": value}})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"content": "recrods"}, "unknown content 'recrods'; choose from records, batches, offset_index, time_index"),
        (
            {"startingOfsets": "earliest"},
            "unknown option 'startingOfsets' of kafka_segments; choose from assign, checkCrcs, columns",
        ),
        ({"content": "segments", "startingOffsets": "earliest"}, "startingOffsets does not apply to content=segments"),
        ({"subscribe": "a", "assign": '{"a": [0]}'}, "only one of subscribe, subscribePattern and assign"),
        ({"subscribe": " , "}, "subscribe names no topic"),
        ({"columns": ","}, "columns names no column"),
        (
            {"columns": "key,Offset"},
            "unknown column 'Offset' of records; choose from key, value, topic, partition",
        ),
        ({"content": "segments", "columns": "value"}, "unknown column 'value' of segments; choose from path, topic"),
        ({"subscribePattern": "("}, "subscribePattern '(' is not a regular expression"),
        ({"startingOffsets": "latest"}, "startingOffsets cannot be latest in a batch query"),
        ({"endingOffsets": "earliest"}, "endingOffsets cannot be earliest in a batch query"),
        ({"startingOffsets": of_key(-1)}, "startingOffsets cannot be latest (-1)"),
        ({"endingOffsets": of_key(-2)}, "endingOffsets cannot be earliest (-2)"),
        ({"startingOffsets": '{"a": 5}'}, 'startingOffsets is not JSON such as {"topicA": {"0": 23}}'),
        ({"startingTimestamp": "yesterday"}, "startingTimestamp is 'yesterday', not a time in milliseconds"),
        ({"assign": "a-0"}, 'assign is not JSON such as {"topicA": [0, 1]'),
        ({"isolationLevel": "serializable"}, "choose from read_uncommitted, read_committed"),
        ({"minPartitions": "0"}, "minPartitions is '0', not an integer of at least 1"),
        ({"failOnDataLoss": "maybe"}, "unknown failOnDataLoss 'maybe'; choose from true, false"),
        ({"storageOptions": "{"}, "storageOptions is not a JSON object"),
    ],
    ids=lambda value: "" if isinstance(value, str) else " ".join(value),
)
def test_a_wrong_name_is_reported_with_the_available_ones(given, said):
    with pytest.raises(ToolError) as error:
        options(**given)
    assert said in str(error.value)


def test_a_query_written_for_kafka_is_taken_as_it_is():
    read = options(
        **{
            "kafka.bootstrap.servers": "host:9092",
            "kafka.isolation.level": "read_committed",
            "SUBSCRIBE": "restarted, transactions",
            "startingoffsets": "earliest",
            "groupIdPrefix": "x",
            "fetchOffset.numRetries": 3,
        }
    )
    assert read.topics == {"restarted", "transactions"}
    assert read.isolation == "read_committed"
    assert [str(log.key) for log in chosen_partitions(read, Predicates())] == ["restarted-0", "transactions-0"]


@pytest.mark.parametrize(
    ("pattern", "topic", "there"),
    [
        ("order", "orders", True),
        ("^order$", "orders", False),
        (r"^\p{Lower}+$", "orders", True),
        (r"^\p{Lower}+$", "Orders", False),
        (r"[a-z&&[^x]]+[\p{javaDigit}.]*", "orders.2", True),
        (r"^[a-z&&[^x]]+$", "x", False),
        (r"\Qa.b\E.*", "a.bc", True),
        (r"\Qa.b", "axb", False),
        (r"\\Q.*", r"\Q1", True),
        (r"(?<n>\P{javaUpperCase})\k<n>", "aa", True),
        (r"a++(?i)B\x{63}", "aabc", True),
        (".*", "__consumer_offsets", False),
        ("__transaction_state", "__transaction_state", False),
        (".*", "__of_ones_own", True),
    ],
)
def test_patterns_have_java_syntax_and_match_no_internal_topic(pattern, topic, there):
    assert options(subscribePattern=pattern).wants(TopicPartition(topic, 0)) == there


def test_one_time_precedes_a_table_of_times_and_that_precedes_offsets():
    given = {"startingTimestamp": 7, "startingOffsetsByTimestamp": of_key(8), "startingOffsets": of_key(9)}
    assert options(**given).start == Bound(by_time=True, value=7)
    del given["startingTimestamp"]
    assert options(**given).start == Bound(by_time=True, value={KEY: 8})
    del given["startingOffsetsByTimestamp"]
    assert options(**given).start == Bound(by_time=False, value={KEY: 9})
    assert options().start.of(KEY) == -2
    assert options().end.of(KEY) == -1


def ranged(**given):
    log = next(log for log in find_partitions(options().stores) if log.key == KEY)
    return range_of(KEY, log, options(**given), Counter())


def test_ranges_end_before_the_end_and_losses_fail_or_are_skipped():
    assert ranged() == (0, None)
    assert ranged(startingOffsets=of_key(5), endingOffsets=of_key(9)) == (5, 9)
    assert ranged(startingOffsets=of_key(-2), endingOffsets=of_key(-1)) == (0, None)
    assert ranged(startingOffsets=of_key(9), endingOffsets=of_key(9)) == (9, 9)
    for loss in ("true", "false"):
        with pytest.raises(ToolError, match="the start offset 9 of restarted-0 is past the end 5"):
            ranged(startingOffsets=of_key(9), endingOffsets=of_key(5), failOnDataLoss=loss)
    assert ranged(startingTimestamp=0, endingTimestamp=1 << 62) == (0, None)
    with pytest.raises(ToolError, match="no record of restarted-0 has a timestamp of at least 4611686018427387904"):
        ranged(startingTimestamp=1 << 62)
    assert ranged(startingTimestamp=1 << 62, startingOffsetsByTimestampStrategy="latest") == (108, None)
    with pytest.raises(ToolError, match="restarted-0 ends at offset 108, before the requested offset 109"):
        ranged(startingOffsets=of_key(109))
    assert ranged(startingOffsets=of_key(109), failOnDataLoss="false") == (109, None)
    with pytest.raises(ToolError, match="restarted-0 ends at offset 108, before the requested offset 200"):
        ranged(endingOffsets=of_key(200))


def test_tables_name_every_partition_of_the_query():
    with pytest.raises(ToolError, match="missing: transactions-0, unknown: none"):
        chosen_partitions(options(subscribe="restarted,transactions", startingOffsets=of_key(3)), Predicates())
    assert chosen_partitions(options(assign='{"restarted": [0]}', startingOffsets=of_key(3)), Predicates())
    with pytest.raises(ToolError, match="unknown topic or partition restarted-4; choose from create-time"):
        chosen_partitions(options(assign='{"restarted": [4]}'), Predicates())


def test_a_deleted_start_is_lost(tmp_path):
    """An offset below the log start in the broker's checkpoint is deleted, though the segment still contains it."""
    partition = tmp_path / str(KEY)
    partition.mkdir()
    for path in (GOLDEN / str(KEY)).iterdir():
        (partition / path.name).write_bytes(path.read_bytes())
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nrestarted 0 33\n")
    log = next(iter(find_partitions(read_options({"path": str(tmp_path)}).stores)))
    assert range_of(KEY, log, options(), Counter()) == (33, None)
    with pytest.raises(ToolError, match="begins at offset 33; offset 5 was deleted"):
        range_of(KEY, log, options(startingOffsets=of_key(5)), Counter())
    assert range_of(KEY, log, options(startingOffsets=of_key(5), failOnDataLoss="false"), Counter()) == (33, None)


def test_of_several_replicas_the_longest_is_read(tmp_path):
    for number, keep in (("1", 1), ("2", 2)):
        partition = tmp_path / number / str(KEY)
        partition.mkdir(parents=True)
        logs = sorted((GOLDEN / str(KEY)).glob("*.log"))[:keep]
        for log in logs:
            for suffix in (".log", ".index", ".timeindex"):
                (partition / f"{log.stem}{suffix}").write_bytes(log.with_suffix(suffix).read_bytes())
    for given, directories in (({}, ["2", "2"]), ({"replicas": "all"}, ["1", "2", "2"])):
        read = read_options({"path": str(tmp_path)} | given)
        splits = [split for task in plan_splits(read, Predicates(), Counter()) for split in task]
        assert [Path(split.segment.directory).parent.name for split in splits] == directories


@pytest.mark.parametrize(
    ("given", "columns"),
    [
        ({"columns": "offset, key"}, "offset bigint, key binary"),
        ({"columns": "headers,offset"}, "headers array<struct<key:string,value:binary>>, offset bigint"),
        ({"content": "segments", "columns": "topic_id"}, "topic_id string"),
    ],
    ids=str,
)
def test_named_columns_are_the_columns_of_a_query_and_of_a_table(given, columns):
    given = {"path": str(GOLDEN)} | given
    assert KafkaSegmentsSource(given).schema() == columns
    of_table = {"provider": "kafka_segments"} | {f"option.{name}": value for name, value in given.items()}
    assert KafkaSegmentsSource(of_table).schema().names == [each.split()[0] for each in columns.split(", ")]
