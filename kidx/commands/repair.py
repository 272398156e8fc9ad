"""``kidx repair``: rebuilds files that verify found broken, as a release's recovery would, and keeps the old ones."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kidx.commands.line import complain, say, say_json
from kidx.commands.options import WrittenReleaseOption, required_dialect
from kidx.discovery import INDEX_SUFFIXES
from kidx.errors import ToolError
from kidx.java_values import INT_MAX
from kidx.printable import counted, shell_word

if TYPE_CHECKING:
    from kidx.repair import Change, Repair


def repair_command(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH ...", help="Segments, partitions or log directories, as for verify.")
    ],
    *,
    release: WrittenReleaseOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; print what would be done. A broker may be running.")
    ] = False,
    backup: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="First copy the files that change to DIR, with a script that restores them."),
    ] = None,
    index_interval_bytes: Annotated[
        int | None,
        typer.Option(min=0, max=INT_MAX, metavar="N", help="The topics' index.interval.bytes; inferred if not given."),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option("-j", "--jobs", min=1, metavar="N", help="Number of processes; one per processor if not given."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")] = False,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="Print only files that cannot be rebuilt, and the last line.")
    ] = False,
) -> int:
    """Rebuild broken and missing index files from valid logs, as a release's recovery would.

    A leader-epoch-checkpoint is rebuilt from the epochs of the batches. Corrupt files in the cache of remote indexes
    are deleted, because the broker fetches them again. The broker must be stopped: nothing is done while one holds the
    lock of a log directory. A replaced file is kept as FILE.old; if that name is taken by a file with other content, as
    FILE.old2, and so on. With --backup DIR, each file that changes is first copied to DIR, and the copy compared; if
    that fails, nothing is changed. The printed command puts the files back. Logs, valid indexes and the checkpoints of
    the log directory are never touched. A file that cannot be rebuilt is reported with the reason. After the command
    was killed at any moment, it can be run again.

    Exit code 0: every file is valid now, that is, equal to the file that recovery writes, or different but consistent
    with the log. 1: a file is not valid, or a dry run found work to do. 2: the work could not be done.

    Example: kidx repair /var/lib/kafka/data --kafka 3.9.2 --dry-run
    """
    dialect = required_dialect(release, "repair")
    from kidx.repair import repair_paths  # noqa: PLC0415 -- numpy is only loaded to work
    from kidx.verify.progress import verify_with_progress  # noqa: PLC0415

    result = repair_paths(
        paths,
        release=dialect,
        index_interval_bytes=index_interval_bytes,
        dry_run=dry_run,
        backup=backup,
        verify=partial(verify_with_progress, shown=not quiet),
        processes=processes,
    )
    if result.before.problems and not result.before.files:
        raise ToolError("; ".join(f"{problem.path}: {problem.message}" for problem in result.before.problems))
    if as_json:
        say_json(result.to_json())
    else:
        _print(result, paths, backup, quiet=quiet)
    sys.stdout.flush()
    if result.exit_code == 2:
        raise ToolError("no file could be read; the output lists the reasons")
    return result.exit_code


def _print(result: Repair, paths: list[str], backup: Path | None, *, quiet: bool) -> None:
    if not quiet:
        say(f"release    {result.release}: files are rebuilt as its recovery writes them")
        if result.backup is not None:
            copied = f"{counted(len(result.backup.copied), 'file')}, {counted(result.backup.size, 'byte')}"
            say(f"backup     {result.backup.directory}: {copied} copied, and each copy compared")
        say(*(_line(change, dry_run=result.dry_run) for change in result.changes))
    say(*(f"remains    {fault.path}: {fault.reason}" for fault in result.remaining))
    complain(*(f"kidx: warning: {warning}" for warning in result.warnings))
    complain(*(f"kidx: warning: a broker is running with {held}; stop it before the repair" for held in result.held))
    if result.backup is not None:
        say(f"to restore the former files: {result.backup.restore}")
    say(_last_line(result))
    if result.dry_run and result.changes and not quiet:
        words = ["kidx", "repair", *map(shell_word, paths), "--kafka", result.release]
        words += [] if backup is None else ["--backup", shell_word(backup)]
        say(f"next: {' '.join(words)}")


def _line(change: Change, *, dry_run: bool) -> str:
    would = "would be " if dry_run else ""
    old = "" if change.old_size is None else f" in place of {change.old_size:,}"
    kept = f"; the old one is {Path(change.kept).name}" if change.kept else ""
    if change.action == "deleted":
        return f"{would}deleted    {change.path}: the broker fetches it again"
    new = "no transaction was aborted" if change.action == "removed" else f"{counted(change.size, 'byte')}{old}"
    return f"{would}{change.action:<10} {change.path}: {new}{kept}"


def _last_line(result: Repair) -> str:
    rebuilt = [change for change in result.changes if change.action != "deleted"]
    deleted = len(result.changes) - len(rebuilt)
    of_indexes = all(Path(change.path).suffix in INDEX_SUFFIXES for change in rebuilt)
    done = counted(len(rebuilt), "index file" if of_indexes else "file")
    copies = f", {counted(deleted, 'cached file')} {'would be ' if result.dry_run else ''}deleted" if deleted else ""
    left = f", {counted(len(result.remaining), 'fault')} not repaired" if result.remaining else ""
    if result.dry_run:
        return f"DRY RUN: {done} would be rebuilt{copies}{left}; nothing was changed"
    if not result.changes and not result.remaining:
        return "SOUND: there is nothing to repair"
    return f"{'BROKEN' if result.remaining else 'REPAIRED'}: {done} rebuilt and verified{copies}{left}"
