"""README.md and docs/*.md cannot drift: their commands are executed, and the output that they show is compared."""

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from itertools import groupby, pairwise
from pathlib import Path

import pytest
import yaml
from pages import BLOCKS, PAGES, ROOT, blocks, command_lines, the_block
from startups import ID, PROPERTIES, flip, partition_record, write_metadata
from thorough_params import thorough_param
from typer.main import get_command

from conformance.clauses import family, load_clauses
from conformance.cli import app as conformance_app
from conformance.operations.index import INDEX_OPS
from conformance.operations.log import LOG_OPS
from conformance.operations.segment import SEGMENT_OPS
from conformance.runs.profiles import PROFILES
from kidx.cli import app as kidx_app
from kidx.tables.contents import CONTENTS
from kidx.tables.options import COMMON_OPTIONS, OF_BATCHES, OF_RECORDS, OF_STREAMS

README = PAGES["README.md"]
TESTING = "docs/testing-an-implementation.md"
ADAPTER = the_block("python", page=TESTING, containing="sys.stdin")
LIBRARY = blocks("python", containing="print(index.lookup(")
PROGRAMS = [
    (one.body, other.body)
    for one, other in pairwise(BLOCKS)
    if (one.page, one.language, other.language) == (other.page, "python", "text") and "/understand/" in one.page
]
"""Programs that are followed by what they print."""
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
DATA = "/var/lib/kafka/data"
"""The log directory of the examples; a copy of a golden one with one wrong byte takes its place."""
_APART = [
    f"{one.body}{other.body}"
    for one, other in pairwise(BLOCKS)
    if (one.page, other.page, one.language, other.language) == ("README.md", "README.md", "sh", "text")
]
"""Single commands to paste, each with the output in the next block."""
SHOWN = {
    command: [expected for _, expected in group]
    for command, group in groupby(
        sorted(
            body.removeprefix("$ ").removeprefix("python3 bootstrap.py ").split("\n", 1)
            for body in (*_APART, *(body for body in blocks("console") if body.startswith("$ ")))
        ),
        key=lambda each: each[0],
    )
}
"""Commands with their output; several pages may show parts of the same."""
NEW_LOG = the_block("sh", page="README.md", containing="conformance init").splitlines()
LONGEST_README = 120
command_of = cache(get_command)
"""Function that returns the commands of a program; they are built once, not for each line of a page."""


def environment(tmp_path):
    bin_directory = Path(sys.executable).parent
    path = f"{bin_directory}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PATH": path, "XDG_STATE_HOME": str(tmp_path), "COLUMNS": "200"}


def pasted(work, *lines):
    """Run the lines in one shell that ends at the first failing one."""
    return subprocess.run(
        ["bash", "-e"],
        input="\n".join(lines),
        cwd=work,
        env=environment(work),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def data(tmp_path):
    """Copy a broker's log directory, with one wrong byte in a time index."""
    shutil.copytree(ROOT / "tests" / "golden" / "3.9.2", tmp_path / "data")
    with (tmp_path / "data" / "create-time-0" / f"{0:020}.timeindex").open("r+b") as file:
        file.seek(20)
        file.write(b"x")
    return str(tmp_path / "data")


@pytest.mark.jvm
@pytest.mark.parametrize(
    "command",
    [thorough_param(each) if each.startswith("conformance run") else each for each in SHOWN],
    ids=lambda command: command[:40],
)
def test_pages_show_the_output_of_a_command(command, data, tmp_path, in_process, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    words = shlex.split(command.replace(DATA, data))
    done = in_process(*words, work=ROOT, environment={"XDG_STATE_HOME": str(tmp_path), "COLUMNS": "200"})
    # Progress of what takes long, as on a machine whose cores are busy.
    lines = [line for line in done.stderr.splitlines() if not line.startswith("verified ")]
    assert not lines or "fetch" in done.stderr
    everything = "".join(SHOWN[command])
    is_wrong = command != "kidx demo" and re.search(r"DIVERGES|BROKEN|  replay  ", everything)
    assert done.returncode == (1 if is_wrong else 0)
    for expected in SHOWN[command]:
        assert doctest.OutputChecker().check_output(expected.replace(DATA, data), done.stdout, FLAGS), done.stdout


@pytest.mark.parametrize("block", LIBRARY)
def test_library_example_prints_its_comments_each_time(block, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    exec(block, {})  # noqa: S102
    exec(block, {})  # noqa: S102
    comments = re.findall(r"# ([A-Z]\w+\(.*\))", block)
    printed = capsys.readouterr().out
    assert comments
    assert all(line in printed for line in comments)


@pytest.mark.parametrize(("program", "printed"), PROGRAMS)
def test_a_program_prints_what_the_page_says(program, printed, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    exec(program, {})  # noqa: S102
    assert capsys.readouterr().out == printed


def test_repair_fixes_the_findings_of_verify(data, tmp_path, in_process):
    codes = [
        in_process(*shlex.split(line.replace(DATA, data)), work=tmp_path).returncode
        for line in the_block("sh", page="docs/operating.md", containing="kidx repair").splitlines()
    ]
    assert codes == [1, 1, 0]
    assert in_process("kidx", "verify", data, "--kafka", "3.9.2", work=tmp_path).returncode == 0


def zeroed_time_index(data):
    path = data / "create-time-0" / f"{0:020}.timeindex"
    path.write_bytes(bytes(path.stat().st_size))


def lost_time_index(data):
    (data / "create-time-0" / f"{0:020}.timeindex").unlink()


def unknown_version(data):
    path = data / "transactions-0" / f"{105:020}.txnindex"
    path.write_bytes(b"\x7f" + path.read_bytes()[1:])


def torn_batch(data):
    path = data / "create-time-0" / f"{132:020}.log"
    path.write_bytes(path.read_bytes()[:-20] + bytes(20))


def replaced_disk(data):
    """Let KRaft's metadata assign a partition that is on no disk, of which one is empty."""
    (data / "meta.properties").write_text(PROPERTIES)
    write_metadata(data, partition_record(0, [1]))
    (data.parent / f"{data.name}2").mkdir()


@pytest.mark.parametrize(
    ("section", "damage", "codes"),
    [
        (".timeindex zeroed, cut or lost", zeroed_time_index, [1, 1, 0, 0]),
        (".timeindex zeroed, cut or lost", lost_time_index, [1, 1, 0, 0]),
        ("The broker will not start because of an index", unknown_version, [1, 1, 0, 0]),
        ("The broker does not start after a full disk", torn_batch, [1]),
        ("A fault in a memory access", zeroed_time_index, [1]),
        ("Found a corrupted index file", lambda _: None, [0]),
        ("A disk was replaced", replaced_disk, [1]),
    ],
)
def test_the_runbook_helps(section, damage, codes, tmp_path, in_process):
    data = tmp_path / "data"
    for partition in (ROOT / "tests" / "golden" / "3.9.2").glob("*-0"):
        shutil.copytree(partition, data / partition.name)
    damage(data)
    text = PAGES["docs/runbook.md"].partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    (block,) = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    done = [in_process(*shlex.split(line.replace(DATA, str(data))), work=tmp_path) for line in block.splitlines()]
    assert [each.returncode for each in done] == codes
    assert ("may I start the broker? no" in done[0].stdout) == (damage in (torn_batch, unknown_version, replaced_disk))


@pytest.mark.parametrize(
    ("is_corrupt", "answer"), [(False, "yes: the start repairs"), (True, "no: 1 partition would lose")]
)
def test_moving_an_index_away_is_only_for_healthy_logs_as_the_runbook_says(is_corrupt, answer, tmp_path, in_process):
    """The way without kidx, on the corruption that it is for, and on the corruption of which it warns."""
    data = tmp_path / "data"
    partition = data / "create-time-0"
    shutil.copytree(ROOT / "tests" / "golden" / "3.9.2" / "create-time-0", partition)
    (data / "meta.properties").write_text(PROPERTIES)
    (data / ".kafka_cleanshutdown").touch()
    (partition / "partition.metadata").write_text(f"version: 0\ntopic_id: {ID}")
    log, index = (partition / f"{0:020}.{suffix}" for suffix in ("log", "index"))
    zeroed_time_index(data)
    index.unlink()
    if is_corrupt:
        flip(log, log.stat().st_size // 2)
    done = in_process("kidx", "verify", str(data), "--kafka", "3.9.2", work=tmp_path)
    assert f"may I start the broker? {answer}" in done.stdout


@pytest.mark.thorough
def test_ten_minutes_from_nothing_to_a_verdict(tmp_path):
    """The steps of the page in their order: smoke passes, the run finds the defect, and the fix is FIXED."""
    adapter = tmp_path / "my_index.py"
    adapter.write_text(ADAPTER, "utf-8")

    smoke, run = (body.strip() for body in blocks("console", page=TESTING))
    assert pasted(tmp_path, smoke).returncode == 0
    found = pasted(tmp_path, f"{run} --report out/ci")
    assert found.returncode == 1, found.stderr
    assert "OI-3" in found.stdout
    of_a_full_index = r"expected +invalid_argument.*?replay +(conformance replay .*?)$"
    replay = re.search(of_a_full_index, found.stdout, re.DOTALL | re.MULTILINE)[1]
    assert pasted(tmp_path, the_block("console", page="docs/ci.md", containing="conformance report")).returncode == 1
    assert {path.name for path in tmp_path.iterdir()} >= {"report.html", "report.xml", "summary.md", "badge.json"}
    rejection = (
        '    elif op == "append" and 8 * len(index["entries"]) == os.fstat(index["file"]).st_size:\n'
        '        return {"error": "invalid_argument", "message": "full"}\n    elif op == "append":\n'
    )
    fixed = ADAPTER.replace('    elif op == "append":\n', rejection)
    answer = 'else {"ok": found}'
    fixed = fixed.replace(answer, 'else found if isinstance(found, dict) and "error" in found else {"ok": found}')
    adapter.write_text(fixed, "utf-8")
    done = pasted(tmp_path, replay)
    assert (done.returncode, done.stdout.splitlines()[-1][:5]) == (0, "FIXED")


@pytest.mark.thorough
def test_a_new_log_conforms(tmp_path):
    """The three commands write an adapter, find it in order, and find no divergence."""
    assert the_block("sh", page=TESTING, containing="--lang python").splitlines() == NEW_LOG
    done = pasted(tmp_path, *NEW_LOG)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "segments and files are not compared" in done.stdout


@pytest.mark.go
@pytest.mark.thorough
def test_a_new_index_in_go_conforms(tmp_path):
    """The commands of the page build an adapter in Go, and compare it with the release that they name."""
    *lines, run = the_block("sh", page=TESTING, containing="--lang go").splitlines()
    done = pasted(tmp_path, *lines, f"{run} --max-examples 2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\n4.3.1 " in done.stdout


def require_command(line):
    """Require the command of a line, and its options."""
    words = shlex.split(line.partition(" || ")[0].removeprefix("- run: ").removeprefix("python3 bootstrap.py "))
    if words[:2] == ["python", "-m"]:
        assert find_spec(words[2]), line
        return
    command, rest = command_of(kidx_app if words[0] == "kidx" else conformance_app), words[1:]
    while hasattr(command, "commands"):
        assert rest[0] in command.commands, line
        command, *rest = command.commands[rest[0]], *rest[1:]
    known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    assert {word.partition("=")[0] for word in rest if re.match(r"--?[a-z]", word)} <= known | {"--help"}, line


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_options_of_a_page_exist(page):
    for _, line in command_lines(page=page):
        require_command(line)


@pytest.mark.thorough
@pytest.mark.parametrize("folder", ["reports", "findings"])
def test_commands_and_options_of_reports_and_findings_exist(folder):
    named = re.compile(r"`((?:python3 bootstrap\.py )?(?:conformance|kidx|python -m) [^`]*)`")
    for page in sorted((ROOT / folder).rglob("*.md")):
        for line in named.findall(page.read_text("utf-8")):
            require_command(line)


def test_every_page_has_commands_that_are_checked():
    assert len(command_lines(page="README.md")) > 5
    assert len({page for page, _ in command_lines()}) > 8
    assert {block.language for block in BLOCKS} <= {"console", "sh", "python", "yaml", "toml", "json", "text", "ini"}


def test_pytest_plug_in_collects_a_clause(tmp_path):
    lines = {line for body in blocks("console") for line in body.splitlines() if line.startswith("pytest --kafka")}
    (line,) = lines
    done = subprocess.run(
        [*shlex.split(line), "--collect-only", "-q"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "conformance::offset::OI-7 " in done.stdout


def test_ci_runs_the_commands_of_the_readme():
    ci = (ROOT / ".ci" / "run").read_text("utf-8")
    assert 'run() { python3 bootstrap.py "$@"' in ci
    assert 'check() {\n    run "$@"' in ci
    for command in ("conformance run", "pytest"):
        assert f"python3 bootstrap.py {command}" in README
        assert f"\ncheck {command} " in ci


@pytest.mark.thorough
def test_the_first_narrow_command_of_contributing_is_green(tmp_path):
    """Both lines as printed, with an environment elsewhere: what is tested is the source tree."""
    script = the_block("sh", page="CONTRIBUTING.md", containing=" -k ").replace(".dev/bin", f"{tmp_path}/dev/bin")
    script = re.sub(r" \.dev(?= )", f" {tmp_path}/dev", script)
    done = subprocess.run(
        ["/bin/sh", "-ec", f"{script.rstrip()} -p no:cacheprovider"],
        cwd=ROOT,
        env={name: value for name, value in environment(tmp_path).items() if name != "KIDX_WHEEL"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\b\d+ passed", done.stdout)


def test_first_screen_has_both_tools():
    screen = "\n".join(README.splitlines()[:24])
    assert len(README.splitlines()) <= LONGEST_README
    commands = re.findall(r"^python3 bootstrap.py (.+)$", README, re.MULTILINE)
    assert "\npython3 bootstrap.py kidx demo\n" in screen
    assert commands == ["kidx demo", "conformance run", "pytest"], "a fresh machine needs no more"
    assert "may I start the broker?" in screen
    assert "kafka-dump-log" in screen


@pytest.mark.parametrize("page", PAGES)
def test_links_and_pictures_of_a_page_exist(page):
    text = re.sub(r"```.*?```", "", PAGES[page], flags=re.DOTALL)
    for link in re.findall(r"\]\((?!https?:)([^)]+)\)", text):
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), link
        if anchor:
            lines = [line.lstrip("# ").lower() for line in target.read_text("utf-8").splitlines() if line[:1] == "#"]
            named = re.findall(r'<a id="([\w-]+)">', target.read_text("utf-8"))
            assert anchor in {*named, *(re.sub(r"[^\w -]", "", line).replace(" ", "-") for line in lines)}, link


def test_every_page_is_linked_from_the_readme_or_from_a_page_that_is():
    linked, new = set(), {"README.md"}
    while new:
        linked |= new
        links = [(ROOT / page).parent / link for page in new for link in re.findall(r"\]\(([^)#:]+\.md)", PAGES[page])]
        new = {os.path.relpath(link, ROOT) for link in links} & PAGES.keys() - linked
    assert PAGES.keys() - linked == set()


@pytest.mark.parametrize("page", PAGES)
def test_clauses_that_a_page_names_exist(page):
    """The site makes links of them."""
    known = {*load_clauses(), *map(family, load_clauses())}
    chapters = {each.partition("-")[0] for each in known}
    named = set(re.findall(rf"\b(?:{'|'.join(chapters)})-\d+[a-z]?\b", PAGES[page]))
    assert named <= known
    assert named or not page.startswith("docs/understand/")


def test_the_pages_of_the_specification_are_current():
    done = subprocess.run(
        [sys.executable, "docs/build_spec.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_tickets_proposals_and_pull_requests_are_links():
    findings = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in (ROOT / "findings").rglob("*.md")}
    bare = {page: found for page, text in (PAGES | findings).items() if (found := without_links(text))}
    assert bare == {}, "docs/links.py has the addresses"
    text = "KIP-33, `KIP-32`, [KIP-98](x) (#14141), KAFKA-1, apache/fluss#652"
    assert without_links(text) == ["KIP-33", "#14141", "KAFKA-1", "apache/fluss#652"]


def without_links(text):
    """Return the tickets, proposals and pull requests that a page names outside code and links."""
    plain = re.sub(
        r"```.*?```|<!-- declared -->.*?<!-- end -->|`[^`\n]*`|\[[^\]]*\]\([^)]*\)|^#+ .*?$",
        "",
        text,
        flags=re.DOTALL | re.MULTILINE,
    )
    return re.findall(r"\b(?:KAFKA|KIP)-\d+\b|(?<![\w/&#])#\d{4,5}\b|[\w.-]+/[\w.-]+#\d+\b", plain)


def test_profiles_cost_as_much_as_the_page_says():
    found = re.findall(r"\| `(\w+)` \| ([\d,]+) × (\d+) \|", PAGES[TESTING])
    rows = {name: (examples, steps) for name, examples, steps in found}
    assert rows == {each.name: (f"{each.examples:,}", str(each.steps)) for each in PROFILES.values()}


def test_the_pages_have_every_table_and_option_of_spark():
    for content, columns in CONTENTS.items():
        row = next(line for line in PAGES["docs/querying.md"].splitlines() if line.startswith(f"| `{content}` | "))
        assert columns.endswith(row.rpartition(" | `")[2].removesuffix("` |").removeprefix("…")), content
    named = set(re.findall(r"^\| `(\w+)` \| ", PAGES["docs/spark.md"], re.MULTILINE))
    assert COMMON_OPTIONS | OF_BATCHES | OF_RECORDS | {*OF_STREAMS} <= named | {"paths"}


def test_queries_of_vectors_have_the_declared_numbers():
    table = PAGES["docs/vectors.md"].partition("| query | its numbers |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", table, re.MULTILINE)
    declared = INDEX_OPS | SEGMENT_OPS | LOG_OPS
    assert len(rows) == 9
    assert {name: words.count(", ") + (words != "–") for name, words in rows} == {
        name: len(declared[name].arguments) for name, _ in rows
    }


def test_pictures_load_nothing_from_servers():
    pictures = [
        (ROOT / page).parent / picture
        for page, text in PAGES.items()
        for picture in re.findall(r"!\[.*?\]\((.*?)\)", text)
    ]
    assert pictures
    for picture in pictures:
        assert not re.search(r"url\((?!#)", picture.read_text("utf-8"))


def test_the_job_of_kubernetes_fits_itself_and_runs_a_command_that_exists():
    job = yaml.safe_load(the_block("yaml", page="docs/watching.md", containing="CronJob"))
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,), (volume,) = pod["containers"], pod["volumes"]
    (mount,) = container["volumeMounts"]
    assert (job["apiVersion"], pod["restartPolicy"]) == ("batch/v1", "Never")
    assert (mount["name"], mount["readOnly"], volume["persistentVolumeClaim"]["readOnly"]) == (
        volume["name"],
        True,
        True,
    )
    program, command, path, *words = container["command"]
    assert (program, path) == ("kidx", mount["mountPath"])
    options = {name for each in command_of(kidx_app).commands[command].params for name in each.opts}
    assert {word for word in words if word.startswith("-")} <= options
