"""Mutants of Kafka's bytecode: changes of a small class, known kills and a survivor, hangs, crashes, resumption."""

import json
import re
from functools import partial

import msgspec
import pytest

from conformance.errors import ToolError
from conformance.implementations.jvm.bytecode import asm_jars, kafkas_classes
from conformance.implementations.jvm.driver import compile_java, compiled_classes, driver_class
from conformance.implementations.jvm.virtual_machine import class_loader, java_bytes, start_jvm
from conformance.kafka import class_path
from conformance.operations import Operation
from conformance.operations.trace import Trace
from conformance.studies.mutants import recording as recording_module
from conformance.studies.mutants.engine import Recording
from conformance.studies.mutants.kafka_tests import open_tests, survey
from conformance.studies.mutants.page import page
from conformance.studies.mutants.recording import record
from conformance.studies.mutants.replays import CRASHED, Replayer, Subject, Unloadable, replay_all
from conformance.studies.mutants.sites import Layer, drawn
from conformance.studies.mutants.sources import Sources, installed
from conformance.studies.mutants.verdicts import Header, Verdict, VerdictFile, load_reasons, score_of

RELEASE = "4.3.1"
HEADER = Header(RELEASE, "jvm", "examples", ("offset",), 10, 0)
SMALL = """
public class Small {
    static int calls;
    public static int sum(int[] numbers) {
        int sum = 0;
        for (int at = 0; at < numbers.length; at++)
            sum += numbers[at] * 3;
        return sum;
    }
    public static boolean both(boolean a, boolean b) { return a & b; }
    public static long later(Object time) { touch(7L, time); return calls + (time == null ? 5L : 1L); }
    static void touch(long one, Object other) { calls++; }
    @Override public String toString() { return "" + (calls + 1); }
}
"""
# By operator and change: a call, and its results without and with the change.
CHANGED = {
    ("constant", "0 -> 1"): (("sum", (1, 2)), 9, 10),
    ("negated", "if_icmplt -> if_icmpge"): (("sum", (1, 2)), 9, 0),
    ("boundary", "if_icmplt -> if_icmple"): (("sum", (1, 2)), 9, "java.lang.ArrayIndexOutOfBoundsException"),
    ("constant", "3 -> 4"): (("sum", (1, 2)), 9, 12),
    ("arithmetic", "imul -> idiv"): (("sum", (7, 9)), 48, 5),
    ("arithmetic", "iadd -> isub"): (("sum", (1, 2)), 9, -9),
    ("increment", "1 -> -1"): (("sum", (1, 2)), 9, "java.lang.ArrayIndexOutOfBoundsException"),
    ("return", "plus 1"): (("sum", (1, 2)), 9, 10),
    ("arithmetic", "iand -> ior"): (("both", True, False), False, True),
    ("return", "the other boolean"): (("both", True, False), False, True),
    ("call", "no touch"): (("later", None), 6, 5),
    ("constant", "5 -> 6"): (("later", None), 6, 7),
    ("negated", "ifnonnull -> ifnull"): (("later", None), 6, 2),
    ("arithmetic", "ladd -> lsub"): (("later", None), 6, -4),
}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Return the sites of a small class."""
    directory = tmp_path_factory.mktemp("small")
    (directory / "Small.java").write_text(SMALL)
    compile_java([directory / "Small.java"], [], directory)
    sites = start_jvm().JClass("conformance.Sites", loader=class_loader([compiled_classes(), *asm_jars()]))
    return sites(java_bytes((directory / "Small.class").read_bytes()))


def called(data, name, *arguments):
    """Call a method of the class in a class file; return the result, or the class of the exception."""
    jpype = start_jvm()
    jars = driver_class("MutantLoader$Jars")(jpype.JArray(jpype.JString)(0))
    files = jpype.JArray(jpype.JArray(jpype.JByte))([data])
    names = jpype.JArray(jpype.JString)(["Small.class"])
    loader = driver_class("MutantLoader")(jars, class_loader([]), names, files)
    assert loader.unloadable() is None
    given = [jpype.JArray(jpype.JInt)(each) if isinstance(each, tuple) else each for each in arguments]
    try:
        return getattr(jpype.JClass("Small", loader=loader), name)(*given)
    except jpype.JException as thrown:
        return str(thrown.getClass().getName())


@pytest.mark.parametrize("change", CHANGED, ids=" ".join)
def test_every_operator_changes_its_instruction_alone(change, small):
    call, before, after = CHANGED[change]
    rows = [str(row).split("\t") for row in small.rows()]
    number = next(at for at, row in enumerate(rows) if (row[0], row[2], row[3]) == (call[0], *change))
    assert called(small.changed(number), *call) == after
    for (name, *arguments), expected, _ in CHANGED.values():
        if name != call[0]:
            assert called(small.changed(number), name, *arguments) == expected
    assert before != after


def test_texts_for_people_have_no_sites(small):
    assert {str(row).split("\t")[0] for row in small.rows()} == {"sum", "both", "later", "touch"}


@pytest.fixture(scope="module")
def layer():
    return Layer(Subject(RELEASE, None).jars())


@pytest.fixture(scope="module")
def recording(layer, tmp_path_factory):
    return Recording(HEADER, layer, tmp_path_factory.mktemp("recording"), installed(), 1)


def verdict_of(recording, name):
    (site,) = [site for site in recording.layer.sites if site.name == name]
    (verdict,) = recording.verdicts([site], 1)
    return verdict


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "verdict", "how"),
    [
        ("OffsetIndex.append(entries lastOffset) boundary", "killed", "differs"),
        ("OffsetIndex.truncateTo() call #2", "killed", "differs"),
    ],
)
def test_a_known_mutant_has_its_verdict(name, verdict, how, recording):
    found = verdict_of(recording, name)
    assert (found.verdict, found.how) == (verdict, how)
    assert found.reached
    assert bool(found.machine) == bool(found.step) == (verdict == "killed")


@pytest.mark.thorough
def test_a_mutant_that_hangs_crashes_or_is_rejected_costs_no_other(recording, layer, tmp_path):
    """One worker executes the tasks in their order."""
    (tmp_path / "OffsetPosition.java").write_text(
        "package org.apache.kafka.storage.internals.log;"
        "public class OffsetPosition { static { Runtime.getRuntime().halt(3); } }"
    )
    compile_java([tmp_path / "OffsetPosition.java"], [], tmp_path)
    file = "org/apache/kafka/storage/internals/log/OffsetPosition.class"
    numbers = [("offset", range(len(recording.examples)))]
    (loop,) = [site for site in layer.sites if site.name == "AbstractIndex.binarySearch() constant #3"]
    tasks = [
        ("halts", ({file: (tmp_path / file).read_bytes()}, numbers)),
        ("loops", recording.task(loop)),
        ("is rejected", ({file: b"no class"}, numbers)),
        ("is unchanged", ({}, numbers)),
    ]
    found = {name: result for name, result, _ in replay_all(recording._open, tasks, 1, patience=2)}
    assert found["halts"] == CRASHED
    assert found["loops"].how == "hangs"
    assert isinstance(found["is rejected"], Unloadable)
    assert found["is unchanged"] is None


@pytest.mark.thorough
def test_a_mutant_of_a_class_initializer_is_replayed_with_every_example_of_its_class(recording):
    """A nested class may consist of its initializer, which only the first example executes."""
    sites = [site for site in recording.layer.sites if site.name.startswith("AbstractIndex$1.<clinit>(")]
    assert sites
    for site in sites:
        assert sum(len(numbers) for _, numbers in recording.task(site)[1]) == len(recording.examples)


def test_an_error_of_the_harness_is_no_kill(recording):
    with pytest.raises(ToolError, match=r"(?s)the replay of no machine has failed.*KeyError"):
        list(replay_all(recording._open, [("no machine", ({}, [("nothing", (0,))]))], 1))


def test_a_worker_that_cannot_begin_is_no_crash_of_a_mutant():
    with pytest.raises(ToolError, match=r"(?s)a worker cannot begin to replay.*KeyError"):
        list(replay_all({}.__getitem__, [("a mutant", ({}, []))], 1))


def test_a_replay_compares_every_reply_with_the_recording(recording, tmp_path):
    """The last long of an example is part of the files that are expected after its last step."""
    data = bytearray(recording.path.read_bytes())
    replayer = Replayer(recording.subject, recording.path, tmp_path / "scratch")
    everything = ({}, [("offset", range(len(recording.examples)))])
    assert replayer.first_difference(everything) is None
    steps, batch = recording.examples[0].batches[0]
    assert steps > 1
    at = data.index(batch) + batch.index((5).to_bytes(8, "little", signed=True))
    data[at : at + 8] = (6).to_bytes(8, "little", signed=True)
    changed = tmp_path / "changed"
    changed.write_bytes(data)
    assert Replayer(recording.subject, changed, tmp_path / "scratch").first_difference(everything) is not None


@pytest.mark.thorough
def test_a_mutant_is_killed_by_a_unit_test_of_kafka_that_reaches_it(layer, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    subject, (watched, marks) = Subject(RELEASE, None), layer.watched()
    tests = ["org.apache.kafka.storage.internals.log.OffsetIndexTest", "kafka.server.epoch.LeaderEpochFileCacheTest"]
    rows = survey(subject, watched, len(marks), tmp_path / "survey", tests)
    assert len(rows) > 10
    assert not any(fails for _, fails, _ in rows)
    reached = {marks[place].name for _, _, places in rows for place in places if marks[place] is not None}
    assert "OffsetIndex.truncateTo() call #2" in reached
    assert not any(name.startswith("UnifiedLog.") for name in reached)
    methods, everything = tuple(row[0] for row in rows), [("OffsetIndexTest", range(len(rows)))]
    (site,) = [site for site in layer.sites if site.name == "OffsetIndex.truncateTo() call #2"]
    tasks = [("changed", (layer.changed(site), everything)), ("unchanged", ({}, everything))]
    found = {name: result for name, result, _ in replay_all(partial(open_tests, subject, methods, tmp_path), tasks, 1)}
    assert found["unchanged"] is None
    assert found["changed"].how == "fails"
    assert "OffsetIndexTest" in methods[found["changed"].example]
    assert not list((tmp_path / "here").iterdir())  # Kafka's tests have a configuration that logs into build/
    with pytest.raises(ToolError, match=r"no test jars of Kafka 3\.9\.2 are locked"):
        survey(Subject("3.9.2", None), {}, 0, tmp_path)


def test_sources_that_change_end_a_run_before_its_next_verdict(recording, tmp_path, monkeypatch):
    source = tmp_path / "operations.py"
    source.write_text("a = 1\n")
    monkeypatch.setattr(recording, "sources", Sources([tmp_path]))
    sites = [site for site in recording.layer.sites if site.name.startswith("OffsetIndex.truncateTo() call")][:2]
    verdicts = recording.verdicts(sites, 1)
    assert next(verdicts).site == sites[0].name
    source.write_text("a = 2\n")
    with pytest.raises(ToolError, match=rf"^{source} has changed while mutants ran[^\n]*$"):
        next(verdicts)
    assert not list(verdicts)


@pytest.mark.parametrize(
    "change",
    [
        lambda source: source.write_text("b = 1\n"),
        lambda source: (source.write_text("b = 1\n"), source.write_text("a = 1\n")),
        lambda source: source.unlink(),
        lambda source: source.with_name("new.toml").touch(),
    ],
    ids=["written", "written and restored", "deleted", "added"],
)
def test_every_change_of_the_sources_is_noticed_and_explains_errors(change, tmp_path):
    source = tmp_path / "package" / "operations.py"
    source.parent.mkdir()
    source.write_text("a = 1\n")
    sources = Sources([tmp_path / "package"])
    with pytest.raises(KeyError), sources.held():
        raise KeyError
    (source.parent / "reasons.toml").touch()  # verdicts do not depend on it
    assert Sources([tmp_path / "package"]).digest == sources.digest
    change(source)
    with pytest.raises(ToolError, match="has changed while mutants ran"), sources.held():
        raise KeyError


def decided(site, verdict):
    return Verdict(site, "call", "no c", 1, verdict, 1, 0)


def test_a_comparison_counts_what_each_has_killed_alone():
    mine, others = (
        [Verdict(f"A.{n}() call", "call", "no c", 1, v, 1, 0) for n, v in each.items()] for each in COMPARED
    )
    others = {each.site: each for each in others}
    text = page(HEADER, mine, 9, "conformance mutate-kafka", others)
    assert "| `A` | 3 | 2 | 2 | 1 | 1 |" in text
    assert "| all | 3 | 2 | 2 | 1 | 1 |" in text
    assert "Killed by the others alone:\n\n- `A.c() call`" in text


COMPARED = (
    {"a": "killed", "b": "killed", "c": "survived", "d": "could-not-run", "e": "killed"},
    {"a": "killed", "b": "survived", "c": "killed", "d": "killed"},
)


def test_a_sample_has_a_share_of_every_class_and_follows_from_its_seed(layer):
    sample = drawn(layer.sites, 160, 7)
    assert sample == drawn(layer.sites, 160, 7) != drawn(layer.sites, 160, 8)
    assert len(sample) == 160
    large = {site.class_name for site in layer.sites if site.class_name in ("UnifiedLog", "LogSegment", "Cleaner")}
    share = len(sample) / len(layer.sites)
    for name in large:
        count = sum(site.class_name == name for site in layer.sites)
        assert abs(sum(site.class_name == name for site in sample) - count * share) <= 1
    assert len({site.name for site in layer.sites}) == len(layer.sites)


def test_every_reason_covers_a_site(layer):
    verdicts = [Verdict(site.name, site.operator, site.change, site.line, "survived", 1, 0) for site in layer.sites]
    for reason in load_reasons():
        assert any(map(reason.covers, verdicts)), reason
        assert (reason.kind == "out-of-scope") == bool(reason.seen_by)
    assert score_of(verdicts).excused < len(verdicts) / 4


def called_methods(data):
    """Return class and method of each call in a class file, from its constant pool; other methods may be in it, too."""
    pool, at, number = {}, 10, 1
    sizes = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
    while number < int.from_bytes(data[8:10], "big"):
        tag, size = data[at], sizes.get(data[at], 0)
        if tag == 1:
            size = 2 + int.from_bytes(data[at + 1 : at + 3], "big")
        pool[number] = tag, data[at + 1 : at + 1 + size]
        at, number = at + 1 + size, number + (2 if tag in (5, 6) else 1)

    def text(number):
        return pool[number][1][2:].decode("utf-8", "replace")

    for tag, numbers in pool.values():
        if tag in (10, 11):
            owner, named = int.from_bytes(numbers[:2], "big"), int.from_bytes(numbers[2:], "big")
            name = text(int.from_bytes(pool[named][1][:2], "big"))
            yield text(int.from_bytes(pool[owner][1], "big")).rpartition("/")[2], name


@pytest.mark.thorough
def test_no_class_of_kafka_calls_what_the_reasons_say_nobody_calls():
    uncalled = [each.site.removesuffix("(*") for each in load_reasons() if each.why == "no class of Kafka calls it"]
    wanted = {tuple(name.split(".")) for name in uncalled}
    called, others = set(), set()
    for _, data in kafkas_classes(class_path(RELEASE, "broker"), re.compile(r".*\.class")):
        for each in called_methods(data):
            (called if each in wanted else others).add(each)
    assert len(wanted) > 15
    assert not called
    assert ("LogSegment", "hasOverflow") in others


def test_a_file_of_verdicts_is_continued_where_it_was_cut_off(tmp_path):
    path, verdict = tmp_path / "verdicts.ndjson", Verdict("A.b() call", "call", "no c", 1, "survived", 1, 0.1)
    with VerdictFile(path, HEADER) as file:
        file.add(verdict)
    with path.open("ab") as cut:
        cut.write(b'{"site": "A.d')
    with VerdictFile(path, HEADER) as file:
        assert file.verdicts == {"A.b() call": verdict}
        file.add(msgspec.structs.replace(verdict, site="A.d() call"))
    with VerdictFile(path, HEADER) as file:
        assert list(file.verdicts) == ["A.b() call", "A.d() call"]
    with pytest.raises(ToolError, match="another run: seed, sources differs"):
        VerdictFile(path, msgspec.structs.replace(HEADER, seed=1, sources="other"))
    path.write_text("{}\n")
    with pytest.raises(ToolError, match="no file of verdicts"):
        VerdictFile(path, HEADER)


@pytest.mark.thorough
def test_a_command_continues_with_the_mutants_that_have_no_verdict(conformance, tmp_path):
    words = ("mutate-kafka", "--kafka", RELEASE, "--class", "OffsetIndex", "--operator", "arithmetic")
    words += ("--machine", "offset", "--max-examples", "5", "--jobs", "1", "--verdicts", "verdicts.ndjson")
    first = conformance(*words, "--sample", "2", "--json")
    assert first.returncode in (0, 1), first.stderr
    path = tmp_path / "verdicts.ndjson"
    header, *lines = path.read_text().splitlines()
    assert json.loads(header)["sources"] == installed().digest
    assert first.stdout.splitlines() == lines
    planted = json.loads(lines[0]) | {"verdict": "could-not-run", "how": "planted"}
    path.write_text("\n".join((header, json.dumps(planted), lines[1])) + "\n")
    again = conformance(*words, "--sample", "3", "--markdown", "page.md")
    assert again.returncode in (1, 3), again.stderr
    assert f"COULD NOT RUN  {planted['site']}: planted" in again.stdout
    assert len(path.read_text().splitlines()) == 4
    page = (tmp_path / "page.md").read_text()
    assert page.startswith(f"# Mutants of Kafka {RELEASE}\n")
    assert "## Could not run" in page


@pytest.mark.thorough
def test_an_example_with_files_that_are_too_large_is_no_example_that_conforms(monkeypatch):
    large = Trace("offset", RELEASE, (Operation("open", ("offset", "00000000000000000000.index", 0, 10 << 20, True)),))
    monkeypatch.setattr(recording_module, "load_regression_traces", lambda _: [large])
    recorded, *others = record("offset", "jvm", RELEASE, 1, 0)
    assert recorded.name == large.id
    assert recorded.differs
    assert not any(each.differs for each in others)
