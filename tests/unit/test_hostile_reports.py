"""Names and last words of other programs in reports: shown as text, obeyed by no terminal, page or Markdown reader."""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from conformance import cli
from conformance.events import Diverged, Result, RunFinished, RunStarted
from conformance.operations import Operation
from conformance.operations.trace import Trace
from conformance.report.combined import CombinedReport
from conformance.report.console import escape_for_console, sanitizing
from conformance.report.divergence import format_divergence, format_value
from conformance.report.html import html
from conformance.report.junit import junit
from conformance.report.markdown import markdown
from conformance.report.stream import NdjsonWriter, read_streams
from conformance.report.terminal import TerminalWriter

VERDICT = "conforms · 9999 steps in 1.0 s"
NAME = f"[red]x`</td><script>alert(1)</script>![i](http://example.invalid/i)|\x1b[2J\x9b1m\u202e\r\n{VERDICT}"
LAST_WORDS = f"ended (exit status 3) to hello; its stderr says:\nboom\x1b]0;owned\x07\r\n{VERDICT}\n\x85{VERDICT}\u2028"
FAILURE = {
    "step": 0,
    "participant": NAME,
    "release": "4.4.0",
    "against": "kidx",
    "aspects": ["outcome"],
    "expected": [None, [1, 2]],
    "actual": ["failure", None, LAST_WORDS],
    "clauses": [],
}
EVENTS = (
    RunStarted(("4.4.0",), (NAME,), ("offset",), "dev", "observed", 7, {"kidx": "0"}, "2026-01-02T03:04:05+00:00"),
    Diverged("offset", FAILURE, (), (f"open(path={NAME})",), f"/gone/{NAME}.json", f"conformance replay {NAME}", NAME),
    Result("offset", NAME, "4.4.0", 1, 1, 1.0, 1, {"OI-7": 1}, {"OI-7": "conforms"}),
    Result("time", NAME, "4.4.0", 0, 0, 0.0, 0, {"TI-7": 0}, {"TI-7": "unsupported"}),
    RunFinished("diverges", 1, 1.0),
)


def is_shown_safely(text: str) -> bool:
    """Check that a text has only printable characters and line breaks, and that no line begins as a verdict does."""
    return all(map(str.isprintable, text.split("\n"))) and not re.search(f"(?m)^{VERDICT}", text)


@pytest.fixture
def report(tmp_path):
    with NdjsonWriter(tmp_path) as writer:
        for event in EVENTS:
            writer(event)
    return CombinedReport(read_streams([tmp_path]))


def test_last_output_is_indented_and_complete():
    text = format_divergence(EVENTS[1])
    assert is_shown_safely(text)
    assert f"\n{' ' * 15}{VERDICT}" in text
    assert "  actual       failure: ended (exit status 3) to hello; its stderr says:\n" in text
    long = "ended (exit status 3): " + "x" * 1000
    assert format_value(long) == long
    assert format_value("0a" * 1000).endswith("(1000 bytes)")


@pytest.mark.parametrize("terminal", [False, True])
def test_a_terminal_obeys_no_name(terminal):
    file = io.StringIO()
    with TerminalWriter(Console(file=file, width=300, force_terminal=terminal), verbose=True) as writer:
        for event in EVENTS:
            writer(event)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", file.getvalue()) if terminal else file.getvalue()
    assert "\x1b[2J" not in file.getvalue()
    assert "[red]x`</td><script>" in text
    assert is_shown_safely(text.replace("\r", ""))
    assert text.count("DIVERGES: 1 divergence") == 1


def test_a_shielded_console_keeps_its_colours():
    file = io.StringIO()
    console = sanitizing(Console(file=file, width=80, force_terminal=True, color_system="standard"))
    table = Table(box=None)
    table.add_column("name")
    table.add_row(Text("a\x1b[2Jb", "red"))
    console.print(table)
    console.print("[bold]" + escape_for_console("[/]c\x07") + "[/]", highlight=False)
    assert "\x1b[31ma\\x1b[2Jb" in file.getvalue()
    assert "\x1b[1m[/]c\\x07" in file.getvalue()


def test_markdown_has_no_html_no_link_and_no_cell_of_a_name(report):
    text = markdown(report)
    assert is_shown_safely(text)
    assert "<script" not in text
    assert "</td>" not in text
    outside_html = re.sub(r"(?s)<summary>.*?</summary>|<pre>.*?</pre>", "", text)
    assert not re.search(r"(?<!\\)[\[\]]", outside_html)
    (row,) = [line for line in text.splitlines() if line.startswith("| ") and "4.4.0" in line and "script" in line]
    assert len(re.findall(r"(?<!\\)\|", row)) == len(
        re.findall(r"\|", "| implementation | release | a | b | c | d | e | f | g |")
    )


def test_a_usual_name_is_code_in_markdown(tmp_path):
    name = "exec:./my-index --release {release}"
    with NdjsonWriter(tmp_path) as writer:
        writer(RunStarted(("4.4.0",), (name,), ("offset",), "dev", "observed", 7, {}, "2026-01-02T03:04:05+00:00"))
        writer(Result("offset", name, "4.4.0", 1, 1, 1.0, 0, {"OI-7": 1}, {"OI-7": "conforms"}))
        writer(RunFinished("conforms", 1, 1.0))
    assert f"| `{name}` | 4.4.0 |" in markdown(CombinedReport(read_streams([tmp_path])))


@pytest.mark.parametrize("page", [html, junit])
def test_pages_contain_names_as_text(report, page):
    text = page(report)
    assert all(map(str.isprintable, text.split("\n")))
    assert all(map(is_shown_safely, re.findall("(?s)<pre>(.*?)</pre>", text)))
    assert "<script>alert" not in text
    assert r"\x1b[2J" in text


ADAPTER = [sys.executable, str(Path(__file__).parents[1] / "adapters" / "bad.py"), "forges"]


def printed(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["conformance", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    out, err = capsys.readouterr()
    assert is_shown_safely(out), out
    assert is_shown_safely(err), err
    return ended.value.code, out, err


def test_an_adapter_forges_no_verdict(tmp_path, monkeypatch, capsys):
    """Neither in a run, nor in a replay of what it was found by, nor in smoke, nor where it cannot be started."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("VERDICT", VERDICT)
    adapter = f"exec:{shlex.join(ADAPTER)}"
    common = ("run", "-i", adapter, "--machine", "offset", "--max-examples", "3", "--kafka", "4.4.0")
    quickly = ("--fail-fast", "--max-shrink-time", "0")
    code, out, _ = printed(monkeypatch, capsys, *common, *quickly, "--report", tmp_path / "report")
    assert code == 1
    assert r"\x1b[2J" in out
    trace, *_ = sorted((tmp_path / "report" / "traces").iterdir())
    code, out, _ = printed(monkeypatch, capsys, "replay", trace, "-i", adapter)
    assert (code, out.splitlines()[-1].split()[0]) == (1, "FAILED")
    code, out, _ = printed(monkeypatch, capsys, "smoke", "-i", adapter)
    assert code == 1
    code, out, err = printed(monkeypatch, capsys, *common[:2], f"{adapter} --at-once", *common[3:])
    assert (code, err.count("\n")) == (2, 1)
    assert r"\x1b[2J" in err


def test_a_replay_shows_a_hostile_trace_as_text(tmp_path, monkeypatch, capsys):
    steps = (Operation("open", ("offset", "0.index\x1b[2J\n", 0, 64, True)),)
    file = Trace("offset", "4.4.0", steps, title=NAME).save(tmp_path)
    adapter = shlex.join(["exec:" + sys.executable, str(Path(ADAPTER[1]).with_name("line_index.py"))])
    code, out, _ = printed(monkeypatch, capsys, "replay", file, "-i", adapter)
    assert code == 0
    assert out.count("\n") == 2
    code, _, err = printed(monkeypatch, capsys, "replay", f"{NAME}.json")
    assert (code, err.count("\n")) == (2, 1)


def test_json_output_is_ascii(tmp_path, monkeypatch, capsys):
    with NdjsonWriter(tmp_path) as writer:
        for event in EVENTS:
            writer(event)
    code, out, _ = printed(monkeypatch, capsys, "report", tmp_path, "--json")
    assert code == 1
    assert out.isascii()
    assert json.loads(out)["divergences"][0]["failure"]["participant"] == NAME
