"""``conformance kafka list | fetch | lock | infer-dialect | image | java``: Kafka's jars, images and Java.

A release is locked if a lock file lists its jars with their SHA-256 hashes.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from conformance.commands.infer_dialect import infer_dialect_command
from conformance.commands.options import JsonOption, echo, resolve_releases
from conformance.errors import JavaNotFoundError, ToolError
from conformance.kafka.broker.image import BASE, assemble, build, image_name
from conformance.kafka.builds import release_of
from conformance.kafka.lock_file import LOCKS, write_lock
from conformance.kafka.progress import show_progress
from conformance.kafka.releases import GROUPS, user_locks
from conformance.kafka.status import fetch_release, list_releases, show_java
from conformance.report.console import sanitizing

app = typer.Typer(
    help="Kafka's jars and the Java that runs them: locks, cache and installations.",
    no_args_is_help=True,
)
app.command("infer-dialect")(infer_dialect_command)


@app.command("list")
def list_command(as_json: JsonOption = False) -> None:
    """List the locked releases, including your own locks, and how many of their jars are cached.

    `--kafka all` means the package's locked releases, `--kafka every` each published release from 2.4.0 on; a release
    without a lock is locked on its first use.

    Example: `conformance kafka list`
    """
    rows = list_releases()
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(row) | {"cached": row.cached} for row in rows]))
        return
    table = Table("release", "jars", "cached", "size", box=None, pad_edge=False)
    for row in rows:
        cached = "all" if row.cached else f"{row.cached_jars}"
        table.add_row(f"{row.release} (yours)" if row.users else row.release, str(row.jars), cached, decimal(row.size))
    sanitizing(Console()).print(table)


@app.command("fetch")
def fetch_command(
    release: Annotated[str, typer.Argument(metavar="RELEASE|all", help="Release to download.")],
    group: Annotated[str, typer.Option(help=f"Only one class path: {', '.join(GROUPS)}.", show_default=False)] = "",
    as_json: JsonOption = False,
) -> None:
    """Download a release's jars into the cache, and check them against the lock.

    After it, `conformance run --kafka 3.9.2` needs no network.

    Example: `conformance kafka fetch 3.9.2`
    """
    chosen = next((each for each in GROUPS if each == group), None)
    if group and chosen is None:
        raise ToolError(f"unknown group {group!r}; choose from {', '.join(GROUPS)}")
    for name in resolve_releases([release]):
        with show_progress(f"Kafka {name}") as progress:
            fetched = fetch_release(name, chosen, progress=progress)
        summary = f"{name}: {len(fetched.jars)} jars, {decimal(fetched.size)}, {fetched.new_jars} of them new, in"
        document = {"release": name, "jars": [str(jar) for jar in fetched.jars], "new": fetched.new_jars}
        typer.echo(json.dumps(document) if as_json else f"{summary} {fetched.directory}")


@app.command("lock")
def lock_command(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="A published release that is not locked.")],
    repository: Annotated[
        bool, typer.Option("--in-package", help="Write the lock next to the package's own, for a commit.")
    ] = False,
    work: Annotated[
        Path | None, typer.Option("--download-dir", metavar="DIR", help="Keep downloads here for later runs.")
    ] = None,
) -> None:
    """Lock a release: resolve its class path, download every jar, and write coordinates and SHA-256.

    `--kafka RELEASE` works from then on. An unknown release gets the dialect of the newest release before it;
    `conformance diff` shows where that is wrong.

    Example: `conformance kafka lock 4.2.0`
    """
    directory = LOCKS if repository else user_locks()
    path, jars = write_lock(release, directory, work)
    echo(f"{release}: {jars} jars, {path}")
    echo(f"compare:  conformance diff {release_of(release, before=True)} {release}")
    echo(f"propose its dialect:  conformance kafka infer-dialect {release}")


@app.command("image")
def image_command(
    release: Annotated[str, typer.Argument(metavar="RELEASE|all", help="Release whose broker is packed.")],
    base: Annotated[str, typer.Option(metavar="IMAGE", help="Base image, with bash and a Java.")] = BASE,
    context: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the build context here, without building.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Build a container image of a release's broker, from the locked jars.

    Example: `conformance kafka image 4.3.1`
    """
    releases = resolve_releases([release])
    if context is not None and len(releases) > 1:
        raise ToolError("--context accepts one release")
    for name in releases:
        with show_progress(f"Kafka {name}") as progress:
            if context is not None:
                assemble(name, context, progress=progress)
            else:
                build(name, base=base, progress=progress)
        place = image_name(name) if context is None else str(context)
        document = {"release": name, "base": base, "image" if context is None else "context": place}
        typer.echo(json.dumps(document) if as_json else f"{name}: {place}")


@app.command("java")
def java_command(as_json: JsonOption = False) -> None:
    """Show which Java is used, and why others are not.

    Example: `conformance kafka java`
    """
    search = show_java()
    if as_json:
        found = None if search.found is None else dataclasses.asdict(search.found)
        passed_over = [dataclasses.asdict(entry) for entry in search.passed_over]
        typer.echo(json.dumps({"found": found, "passed_over": passed_over}, default=str))
    else:
        for entry in search.passed_over:
            echo(f"passed over  {entry.path} ({entry.source}): {entry.reason}")
        if search.found is not None:
            echo(f"uses         {search.found.home} ({search.found.source}): Java {search.found.version}")
    if search.found is None:
        raise JavaNotFoundError("found no usable Java; install with pip install 'kidx[jvm]'")
