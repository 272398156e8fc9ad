"""Test vectors: written the same each time, proved against Kafka's classes, and enough to find defects of a reader."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from functools import cache
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from pages import ROOT, the_block

from conformance.clauses import load_clauses
from conformance.experiments.mutation.measuring import chosen_mutants
from conformance.experiments.vectors.cases import load_cases, not_shown
from conformance.experiments.vectors.defects import find_defects
from conformance.experiments.vectors.document import schema
from conformance.experiments.vectors.writing import build_vectors, write_release
from conformance.kafka.releases import RELEASES
from conformance.operations import KINDS
from conformance.operations.trace_document import schema_text

pytestmark = pytest.mark.jvm
READERS = Path(__file__).parents[1] / "vectors"
EXACT = READERS / "exact_reader.py"
PAGE = "docs/vectors.md"
FEW = ("2.4.1", "4.4.0")
DEFECTS = {
    "off by one": ("else low + 1", "else low + 2"),
    "equal keys: any other path": ("            return middle, middle\n", "            return middle, middle + 1\n"),
    "the warm section is of another size": ("8192 // size", "4096 // size"),
    "base offset ignored": ("long(base + a), b)", "a, b)"),
    "base offset of times ignored": ("(a, long(base + b))", "(a, b)"),
    "little-endian": ('struct.Struct(">qi")', 'struct.Struct("<qi")'),
    "a part of an entry is sound": (" or len(data) % layout.size", ""),
    "timestamps need not ascend": ("rows[-1][0] < rows[0][0]", "False"),
    "a transaction that ends where the fetch begins": ("row[2] >= fetch", "row[2] > fetch"),
    "a transaction that begins at the bound": ("row[1] < upper", "row[1] <= upper"),
    "complete too late": ("row[3] >= upper", "row[3] > upper"),
    "versions are ignored": ("if version != 0 if is_new else version >= 256", "if False"),
    "the magic byte is the next one": ("magic = batch[16]", "magic = batch[15]"),
    "the broker's time is ignored": ("largest if attributes & 8", "largest if attributes & 16"),
    "the start of a search is ignored": (" and offset >= start", ""),
    "only later timestamps are found": ("stamp >= args[0]", "stamp > args[0]"),
    "deltas of offsets are ignored": ("base + varint(body, next_at)[0]", "base"),
    "a batch ends where its first record is": ("last_of(base, b) >= args[0]", "base >= args[0]"),
    "an empty log has no end": (" if every else start_offset", ""),
    "one rule for versions of all releases": ("version != 0 if is_new else version >= 256", "version != 0"),
}
DEFECTS_OF_SMALL_READER = {
    "little-endian": ('"offset": ">ii"', '"offset": "<ii"'),
    "the version has four bytes": (">hqqqq", ">iqqqh"),
    "base offset ignored": ("(base + a, b)", "(a, b)"),
    "base offset of times ignored": ("(a, base + b)", "(a, b)"),
    "the entry after the target": ("rows[above - 1] if above", "rows[above] if above < len(rows)"),
    "the entry before an equal one": ("bisect_right(rows", "bisect_left(rows"),
    "nothing before the first entry": ("(base, 0) if kind", "() if kind"),
    "nothing before the first timestamp": ("else (-1, base)", "else (-1, 0)"),
    "the size is ignored": ("numbers[1] + numbers[2]", "numbers[1]"),
    "a transaction that ends where the fetch begins": ("entry[2] >= fetch", "entry[2] > fetch"),
    "a transaction that begins at the bound": ("entry[1] < upper", "entry[1] <= upper"),
}


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    root = tmp_path_factory.mktemp("vectors")

    @cache
    def of(release):
        write_release(root, release, load_cases())
        return root / release

    return of


def read(program, root):
    done = subprocess.run([sys.executable, program, root], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.thorough
def test_the_schema_is_published_and_the_documents_follow_it(vectors):
    assert (files("conformance") / "schemas/vectors.json").read_text("utf-8") == schema_text(schema())
    validator = jsonschema.Draft202012Validator(schema())
    document = json.loads((vectors("4.4.0") / "vectors.json").read_text("utf-8"))
    validator.validate(document)
    del document["vectors"][0]["queries"][0]["op"]
    assert not validator.is_valid(document)


@pytest.mark.thorough
def test_the_same_bytes_come_out_each_time(vectors, tmp_path):
    write_release(tmp_path, "4.4.0", load_cases())
    mine, again = (
        {p.relative_to(d): p.read_bytes() for p in d.rglob("*") if p.is_file()}
        for d in (vectors("4.4.0"), tmp_path / "4.4.0")
    )
    assert mine == again


@pytest.mark.thorough
def test_the_page_shows_how_vectors_are_written_proved_and_read(tmp_path, in_process):
    commands = the_block("sh", page=PAGE, containing="--check").splitlines()
    done = [in_process(*command.split(), work=tmp_path) for command in commands]
    assert [each.returncode for each in done] == [0, 0]
    for line in the_block("sh", page=PAGE, containing="reader.py").splitlines():
        _, program, directory = line.split()
        root = tmp_path / directory
        assert read(ROOT / program, root)[0] == 0
    rows = set((root / "queries.tsv").read_text("utf-8").splitlines())
    assert set(the_block("text", page=PAGE, containing="sanity_check").splitlines()) <= rows
    rows = set((root / "sound.tsv").read_text("utf-8").splitlines())
    assert set(the_block("text", page=PAGE, containing="1007 100").splitlines()) <= rows


def test_the_page_has_the_lines_of_each_reader():
    page = (ROOT / PAGE).read_text("utf-8")
    for path in READERS.glob("[Rr]eader.*"):
        assert f"`{path.name}`](../tests/vectors/{path.name}) | {len(path.read_text('utf-8').splitlines())} |" in page


@pytest.mark.thorough
def test_planted_wrong_answers_are_told_one_a_line(tmp_path, in_process):
    root = tmp_path / "v"
    write_release(root, "4.4.0", [case for case in load_cases() if case.machine == "time"][:6])
    done = in_process("conformance", "vectors", "--check", root, work=tmp_path)
    assert (done.returncode, done.stdout) == (0, "4.4.0: 0 wrong answers\n")
    for program in (EXACT, READERS / "reader.py"):
        code, text = read(program, root / "4.4.0")
        assert code == 0, text
        assert int(text.split()[0]) > 20
    path = root / "4.4.0/vectors.json"
    text = path.read_text("utf-8")
    path.write_text(text.replace('"ok": [-1, 1000]', '"ok": [-1, 1001]', 2), "utf-8")
    next((root / "4.4.0").rglob("*.timeindex")).write_bytes(b"other")
    done = in_process("conformance", "vectors", "--check", root, "-q", work=tmp_path)
    lines = done.stdout.splitlines()
    assert done.returncode == 1
    assert [re.sub(r"/\S+", "PATH", line) for line in lines] == [
        '4.4.0 time-empty: queries 2: lookup(target=-2): {"ok": [-1, 1001]} instead of {"ok": [-1, 1000]}',
        '4.4.0 time-empty: queries 3: lookup(target=-1): {"ok": [-1, 1001]} instead of {"ok": [-1, 1000]}',
        "4.4.0 time-empty: PATH is not the file of the document",
        "4.4.0 PATH does not have the queries of the document",
        "4.4.0 PATH does not have the queries of the document",
    ]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "nothing to do"),
        (("--check", "."), "no vectors in ."),
        (("--out", ".", "--kafka", "4.4.0"), "exists already"),
        (("--check", ".", "--kafka", "4.4.0"), "is not a document of vectors"),
    ],
)
def test_bad_input_is_one_line(words, message, tmp_path, in_process):
    if words[-1:] == ("4.4.0",):
        (tmp_path / "4.4.0").mkdir()
        (tmp_path / "4.4.0/vectors.json").write_text("[]")
    done = in_process("conformance", "vectors", *words, work=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["2.4.1", "4.4.0"])
def test_the_exact_reader_answers_every_query(vectors, release):
    code, text = read(EXACT, vectors(release))
    assert code == 0, text
    asked, not_answered = re.match(r"(\d+) queries, (\d+) not answered", text).groups()
    assert int(asked) > 5000
    assert int(not_answered) < 600  # codecs that Python does not have, and what only a broker's classes know


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("program", "command"),
    [
        pytest.param("python3", (sys.executable, "reader.py"), id="python"),
        pytest.param("node", ("node", "reader.mjs"), id="node"),
        pytest.param("java", ("java", "Reader.java"), id="java"),
        pytest.param("go", ("go", "run", "reader.go"), id="go", marks=pytest.mark.go),
        pytest.param("cargo", ("./reader",), id="rust", marks=pytest.mark.cargo),
    ],
)
def test_readers_answer_every_query_about_sound_index_files(vectors, tmp_path, program, command):
    if shutil.which(program) is None:
        pytest.skip(f"NOT TESTED: no {program} on the PATH")
    for source in READERS.glob("[Rr]eader.*"):
        shutil.copy(source, tmp_path)
    if program == "cargo":
        subprocess.run(["rustc", "--edition", "2021", "-o", "reader", "reader.rs"], cwd=tmp_path, check=True)
    for release in ("4.4.0",) if program == "node" else FEW:
        done = subprocess.run([*command, vectors(release)], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        assert re.fullmatch(r"1\d{3} queries, 0 wrong\n", done.stdout)


@pytest.mark.thorough
@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        pytest.param(name, *edit, id=f"{name}: {defect}")
        for name, defects in (("exact_reader.py", DEFECTS), ("reader.py", DEFECTS_OF_SMALL_READER))
        for defect, edit in defects.items()
    ],
)
def test_vectors_find_a_defect_of_a_reader(vectors, tmp_path, name, right, wrong):
    source = (READERS / name).read_text("utf-8")
    assert right in source
    (tmp_path / "reader.py").write_text(source.replace(right, wrong))
    assert any(read(tmp_path / "reader.py", vectors(release))[0] for release in FEW)


@pytest.mark.thorough
def test_vectors_find_planted_defects_of_index_files():
    found = find_defects(chosen_mutants(machines=KINDS))
    assert len(found) == 151
    page = " ".join((ROOT / PAGE).read_text("utf-8").split())
    assert f"queries alone find {sum(bool(each.by_reading) for each in found)} of 151," in page
    assert f"History and queries together find {sum(bool(each.by_writing) for each in found)}." in page


def test_what_is_declared_not_to_be_shown_is_in_the_catalogue():
    assert not_shown().keys() <= load_clauses().keys()
    assert all(not_shown().values())


@pytest.mark.thorough
@pytest.mark.timeout(1500)
def test_every_other_clause_has_a_vector():
    """Each time, the release in which most of the clauses left hold is next: the others have nothing to add."""
    cases, clauses = load_cases(), load_clauses()
    left, releases = clauses.keys() - not_shown(), list(RELEASES)

    def holding(release):
        return sum(clauses[name].applies_to(release) for name in left)

    while left and any(map(holding, releases)):
        releases.remove(release := max(releases, key=holding))
        shown = {name for vector, _ in build_vectors(release, cases) for name in vector.clauses}
        assert shown.isdisjoint(not_shown())
        left -= shown
    assert left == set()
