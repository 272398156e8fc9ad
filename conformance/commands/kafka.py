"""``conformance kafka list | fetch | lock | propose | image | java``: what is locked, cached, packed and found."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from conformance.commands.aliases import KAFKA
from conformance.commands.options import JsonOption, chosen_releases, echo
from conformance.commands.proposing import propose_command
from conformance.errors import JavaNotFoundError, ToolError
from conformance.kafka.broker.image import BASE, assemble, build, image_name
from conformance.kafka.builds import release_of
from conformance.kafka.lock_file import LOCKS, write_lock
from conformance.kafka.progress import show_progress
from conformance.kafka.releases import GROUPS, user_locks
from conformance.kafka.status import fetch_release, list_releases, show_java
from conformance.report.console import sanitizing
from kidx.commands.aliases import accepting

app = typer.Typer(
    cls=accepting(KAFKA),
    help="Kafka's jars and the Java to run them: what is locked, cached and found.",
    no_args_is_help=True,
)
app.command("infer-dialect")(propose_command)


@app.command("list")
def list_command(as_json: JsonOption = False) -> None:
    """List the locked releases, your own locks among them, and how much of each is in the cache.

    `--kafka all` means those of the package, `--kafka every` each published release from 2.4.0 on; what is not locked
    is locked on its first use.

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
    release: Annotated[str, typer.Argument(metavar="RELEASE|all", help="What to bring into the cache.")],
    group: Annotated[str, typer.Option(help=f"Which class path: {', '.join(GROUPS)}.")] = "broker",
    as_json: JsonOption = False,
) -> None:
    """Bring a release's jars into the cache, checked against the lock.

    Example: `conformance kafka fetch 3.9.2`
    """
    if group not in GROUPS:
        raise ToolError(f"there is no group {group!r}; there are {', '.join(GROUPS)}")
    for name in chosen_releases([release]):
        with show_progress(f"Kafka {name}") as progress:
            fetched = fetch_release(name, group, progress=progress)
        said = f"{name}: {len(fetched.jars)} jars, {decimal(fetched.size)}, {fetched.new_jars} of them new, in"
        document = {"release": name, "jars": [str(jar) for jar in fetched.jars], "new": fetched.new_jars}
        typer.echo(json.dumps(document) if as_json else f"{said} {fetched.directory}")


@app.command("lock")
def lock_command(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="A published release that is not locked.")],
    repository: Annotated[
        bool, typer.Option("--in-package", help="Write it beside the package's own locks, for a commit.")
    ] = False,
    work: Annotated[
        Path | None, typer.Option("--download-dir", metavar="DIR", help="Keep downloads here, for the next time.")
    ] = None,
) -> None:
    """Lock a release: resolve its class path, download every jar, and write coordinates and SHA-256.

    From then on `--kafka RELEASE` works. A release that is not known has the dialect of the newest before it, and
    `conformance diff` says where that is wrong.

    Example: `conformance kafka lock 4.2.0`
    """
    directory = LOCKS if repository else user_locks()
    path, jars = write_lock(release, directory, work)
    echo(f"{release}: {jars} jars, {path}")
    echo(f"compare it: conformance diff {release_of(release, before=True)} {release}")
    echo(f"what the package would say of it: conformance kafka infer-dialect {release}")


@app.command("image")
def image_command(
    release: Annotated[str, typer.Argument(metavar="RELEASE|all", help="Whose brokers to pack.")],
    base: Annotated[str, typer.Option(metavar="IMAGE", help="What to build on: bash and a Java.")] = BASE,
    context: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the build context here, and build nothing.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Build a container image of a release's broker, from the locked jars.

    Example: `conformance kafka image 4.3.1`
    """
    releases = chosen_releases([release])
    if context is not None and len(releases) > 1:
        raise ToolError("--context takes one release")
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
        raise JavaNotFoundError("no usable Java was found; pip install 'kidx[jvm]' brings one")
