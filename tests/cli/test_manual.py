"""Man pages of both command lines: one per command, with all of its help, and without misread roff."""

import shutil
import subprocess

import pytest
import typer

from conformance.cli import app as conformance
from kidx.cli import app as kidx


@pytest.mark.parametrize("name", ["kidx", "conformance"])
def test_each_command_has_a_page(name, in_process, tmp_path):
    done = in_process(name, "man", tmp_path, work=tmp_path)
    assert done.returncode == 0, done.stderr
    pages = {path.stem: path.read_text("ascii") for path in (tmp_path / "man1").iterdir()}
    root = typer.main.get_command({"kidx": kidx, "conformance": conformance}[name])
    wanted = {f"{name}-{each}": command for each, command in root.commands.items() if not command.hidden}
    assert {page for page in pages if page.count("-") == 1 or page in wanted} == set(wanted)
    for page, command in wanted.items():
        assert f".SH NAME\n{page.replace('-', chr(92) + '-')} " in pages[page]
        for option in (each for each in command.params if each.param_type_name == "option" and not each.hidden):
            assert option.opts[0].replace("-", "\\-") in pages[page]
    lines = [line for text in pages.values() for line in text.splitlines()]
    assert {line.split(" ")[0] for line in lines if line.startswith((".", "'"))} == {".TH", ".SH", ".PP", ".TP"}


def test_roff_formats_a_page_without_a_warning(in_process, tmp_path):
    if shutil.which("groff") is None:
        pytest.skip("no groff here")
    in_process("kidx", "man", tmp_path, work=tmp_path)
    page = tmp_path / "man1" / "kidx-verify.1"
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", page], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "index.interval.bytes" in done.stdout


def test_an_unwritable_directory_is_one_line(in_process, tmp_path):
    (tmp_path / "file").write_text("")
    done = in_process("kidx", "man", tmp_path / "file", work=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "cannot write " in done.stderr
