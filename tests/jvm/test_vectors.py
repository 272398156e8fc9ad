"""Test vectors: written the same each time, proved against Kafka's classes, and enough to find defects of a reader."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from conformance.clauses import load_clauses
from conformance.experiments.mutation.measuring import chosen_mutants
from conformance.experiments.vectors.cases import load_cases
from conformance.experiments.vectors.clauses import not_shown
from conformance.experiments.vectors.defects import find_defects
from conformance.experiments.vectors.document import schema
from conformance.experiments.vectors.making import made_vectors, write_release
from conformance.kafka.releases import RELEASES
from conformance.operations import KINDS
from conformance.operations.trace_document import schema_text

pytestmark = pytest.mark.jvm
READER = Path(__file__).parents[1] / "vectors" / "reader.py"
FEW = ("2.4.1", "4.4.0")
DEFECTS = {
    "off by one": ("else low + 1", "else low + 2"),
    "equal keys: any other path": ("            return middle, middle\n", "            return middle, middle + 1\n"),
    "the warm section is of another size": ("8192 // size", "4096 // size"),
    "base offset ignored": ("long(base + a), b)", "a, b)"),
    "base offset of times ignored": ("(a, long(base + b))", "(a, b)"),
    "little-endian": ('struct.Struct(">qi")', 'struct.Struct("<qi")'),
    "a part of an entry is no damage": (" or len(data) % layout.size", ""),
    "timestamps need not ascend": ("rows[-1][0] < rows[0][0]", "False"),
    "a transaction that ends where the fetch begins": ("row[2] >= fetch", "row[2] > fetch"),
    "a transaction that begins at the bound": ("row[1] < upper", "row[1] <= upper"),
    "complete too late": ("row[3] >= upper", "row[3] > upper"),
    "versions are ignored": ("if version != 0 if is_new else version >= 256", "if False"),
    "one rule for versions of all releases": ("version != 0 if is_new else version >= 256", "version != 0"),
}


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    root = tmp_path_factory.mktemp("vectors")
    for release in FEW:
        write_release(root, release, load_cases())
    return root


def read(program, root):
    done = subprocess.run([sys.executable, program, root], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_schema_is_published_and_the_documents_follow_it(vectors):
    assert (files("conformance") / "schemas/vectors.json").read_text("utf-8") == schema_text(schema())
    validator = jsonschema.Draft202012Validator(schema())
    document = json.loads((vectors / "4.4.0/vectors.json").read_text("utf-8"))
    validator.validate(document)
    del document["vectors"][0]["questions"][0]["op"]
    assert not validator.is_valid(document)


def test_the_same_bytes_come_out_each_time(vectors, tmp_path):
    write_release(tmp_path, "4.4.0", load_cases())
    mine, again = (
        {p.relative_to(d): p.read_bytes() for p in d.rglob("*") if p.is_file()}
        for d in (vectors / "4.4.0", tmp_path / "4.4.0")
    )
    assert mine == again


def test_planted_wrong_answers_are_told_one_a_line(tmp_path, in_process):
    root = tmp_path / "v"
    write_release(root, "4.4.0", [case for case in load_cases() if case.machine == "time"][:6])
    done = in_process("conformance", "vectors", "--check", root, work=tmp_path)
    assert (done.returncode, done.stdout) == (0, "4.4.0: 0 wrong answers\n")
    path = root / "4.4.0/vectors.json"
    text = path.read_text("utf-8")
    path.write_text(text.replace('"ok": [-1, 1000]', '"ok": [-1, 1001]', 2), "utf-8")
    next((root / "4.4.0").rglob("*.timeindex")).write_bytes(b"other")
    done = in_process("conformance", "vectors", "--check", root, "-q", work=tmp_path)
    lines = done.stdout.splitlines()
    assert done.returncode == 1
    assert [re.sub(r"/\S+", "PATH", line) for line in lines] == [
        '4.4.0 time-empty: questions 2: lookup(target=-2): {"ok": [-1, 1001]} instead of {"ok": [-1, 1000]}',
        '4.4.0 time-empty: questions 3: lookup(target=-1): {"ok": [-1, 1001]} instead of {"ok": [-1, 1000]}',
        "4.4.0 time-empty: PATH is not the file of the document",
        "4.4.0 PATH does not have the questions of the document",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "nothing to do"),
        (("--check", "."), "no vectors in ."),
        (("--out", ".", "--kafka", "4.4.0"), "is there already"),
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


@pytest.mark.parametrize("release", FEW)
def test_the_reader_answers_every_question(vectors, release):
    code, text = read(READER, vectors / release)
    assert code == 0, text
    assert int(text.split()[0]) > 3000


@pytest.mark.parametrize("defect", DEFECTS)
def test_vectors_find_a_defect_of_the_reader(vectors, tmp_path, defect):
    right, wrong = DEFECTS[defect]
    source = READER.read_text("utf-8")
    assert right in source
    (tmp_path / "reader.py").write_text(source.replace(right, wrong))
    assert any(read(tmp_path / "reader.py", vectors / release)[0] for release in FEW)


@pytest.mark.thorough
def test_vectors_find_planted_defects_of_index_files():
    found = find_defects(chosen_mutants(machines=KINDS))
    assert len(found) == 151
    assert sum(bool(each.by_writing) for each in found) >= 151
    assert sum(bool(each.by_reading) for each in found) >= 57


def test_what_is_declared_not_to_be_shown_is_in_the_catalogue():
    assert not_shown().keys() <= load_clauses().keys()
    assert all(not_shown().values())


@pytest.mark.thorough
def test_every_other_clause_has_a_vector():
    cases = load_cases()
    shown = {name for release in RELEASES for vector, _ in made_vectors(release, cases) for name in vector.clauses}
    chapters = ("abstract_index", "search", "offset_index", "time_index", "transaction_index")
    every = {clause.id for clause in load_clauses().values() if clause.chapter in chapters}
    assert sorted(every - shown) == sorted(every & not_shown().keys())
