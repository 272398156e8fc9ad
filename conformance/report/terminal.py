"""A run as a person sees it: progress while it runs, differences as they are found, a table at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from conformance.events import Diverged, Progressed, Replayed, Result, RunFinished, RunStarted
from conformance.report.console import for_console, shielded
from conformance.report.divergence import describe
from conformance.runs import broker_table
from conformance.runs.seeds import seed_in_words

if TYPE_CHECKING:
    from rich.console import Console

    from conformance.events import Event


class TerminalWriter:
    """Prints events; a progress bar on a terminal, plain lines anywhere else.

    Args:
        console: where the results go.
        quiet: differences and the verdict only.
        verbose: also name the clauses that no step exercised.
    """

    def __init__(self, console: Console, *, quiet: bool = False, verbose: bool = False) -> None:
        self.console = shielded(console)
        self.quiet = quiet
        self.verbose = verbose
        self._results: list[Result] = []
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._machine = ""
        self._differences: list[Diverged] = []
        if console.is_terminal and not quiet:
            columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[said]}"))
            self._progress = Progress(*columns, TimeElapsedColumn(), console=console, transient=True)

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._progress is not None:
            self._progress.stop()
        self._print_differences()  # of a run that has no end

    def __call__(self, event: Event) -> None:
        """Prints one event."""
        match event:
            case RunStarted() if not self.quiet:
                self._start(event)
            case Replayed() if not self.quiet:
                said = f"{len(event.traces)} kept traces performed first, {len(event.diverged)} diverged"
                self.console.print(f"{event.machine} machine: {said}", highlight=False)
            case Progressed():
                self._advance(event)
            case Diverged():
                self._differences.append(event)
            case Result():
                self._results.append(event)
            case RunFinished():
                self._finish(event)
            case _:
                pass

    def _start(self, event: RunStarted) -> None:
        releases = ", ".join(event.releases)
        self.console.print(
            f"{for_console(', '.join(event.implementations))} against kidx · releases {releases} · "
            f"profile {event.profile} · level {event.level} · seed {seed_in_words(event.seed, event.seed_source)}",
            highlight=False,
            soft_wrap=True,
        )

    def _advance(self, event: Progressed) -> None:
        said = f"{event.examples} examples, {event.steps} steps"
        if self._progress is None:
            if not self.quiet and event.share >= 1.0 and self._machine != event.machine:
                self._machine = event.machine
                self.console.print(f"{event.machine} machine: {said}", highlight=False)
            return
        if self._task is None or self._machine != event.machine:
            if self._task is not None:
                self._progress.remove_task(self._task)
            self._machine = event.machine
            self._task = self._progress.add_task(f"{event.machine} machine", total=1.0, said="")
        self._progress.update(self._task, completed=event.share, said=said)

    def _finish(self, event: RunFinished) -> None:
        if self._progress is not None:
            self._progress.stop()
        count = len(self._differences)
        differences = f"difference{'' if count == 1 else 's'}"
        stale = event.details.get("stale", [])
        if self._differences and not self.quiet:
            self.console.print(f"DIVERGES: {count} distinct {differences}", style="bold red", highlight=False)
        self._print_differences()
        for expectation in stale:
            said = f"stale expectation, which nothing diverges from any more: {expectation}"
            self.console.print(said, markup=False, highlight=False, soft_wrap=True)
        if not self.quiet:
            for expectation in event.details.get("not seen", []):
                said = f"known, and not seen in this run: {expectation}"
                self.console.print(said, markup=False, highlight=False, soft_wrap=True)
            self.console.print(self._table())
            self._print_brokers()
            self._print_not_driven()
            self._print_excused()
            self._print_cut()
            if self.verbose:
                self._print_not_run()
        verdict = "conforms"
        if count or (event.verdict != "conforms" and not stale):
            verdict = f"DIVERGES: {count} {differences}, see above"
        elif stale:
            verdict = f"FAILS: {len(stale)} stale expectation{'' if len(stale) == 1 else 's'}, no difference"
        self.console.print(f"{verdict} · {event.steps} steps in {event.seconds:.1f} s", highlight=False)

    def _print_differences(self) -> None:
        for event in self._differences:
            self.console.print()
            self.console.print(describe(event), markup=False, highlight=False, soft_wrap=True)
            self.console.print()
        self._differences.clear()

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("release", no_wrap=True)
        table.add_column("impl", overflow="fold", max_width=36)
        table.add_column("machine", no_wrap=True)
        for heading in ("examples", "steps", "steps/s", "diverged", "clauses", "not run"):
            table.add_column(heading, justify="right", no_wrap=True)
        for result in self._results:
            if result.unsupported:
                said = ("–",) * 4 + ("unsupported", "–")
                name = for_console(result.implementation)
                table.add_row(result.release, name, result.machine, *said, style="dim")
                continue
            rate = result.steps / result.seconds if result.seconds else 0.0
            exercised = len(result.verdicts) - result.count("not-run") - result.count("unsupported")
            backend = result.details.get("backend")
            table.add_row(
                result.release,
                for_console(f"{result.implementation} ({backend})" if backend else result.implementation),
                result.machine,
                str(result.examples),
                str(result.steps),
                f"{rate:.0f}",
                f"[bold red]{result.divergences}[/]" if result.divergences else "0",
                f"{exercised}/{len(result.verdicts)}",
                str(result.count("not-run")),
            )
        return table

    def _print_brokers(self) -> None:
        """What was compared with real brokers, if any took part."""
        found = broker_table.rows(self._results)
        if found:
            table = Table(box=None, pad_edge=False, header_style="bold")
            for heading in broker_table.HEADINGS:
                table.add_column(heading, justify="left" if heading in ("release", "backend", "mode") else "right")
            for row in found:
                table.add_row(*row)
            self.console.print()
            self.console.print(table)

    def _print_not_driven(self) -> None:
        """What a build lacks, so that a machine cannot drive it."""
        whys = [str(result.details.get("why", "")) for result in self._results if result.unsupported]
        for why in filter(None, dict.fromkeys(whys)):
            self.console.print(why, markup=False, highlight=False, soft_wrap=True)

    def _print_excused(self) -> None:
        """What was not held against implementations that lack a capability."""
        for result in self._results:
            for words, steps in result.details.get("excused", {}).items():
                said = f"excused in {steps} steps, {result.machine} machine on {result.release}: {words}"
                self.console.print(said, markup=False, highlight=False, soft_wrap=True)

    def _print_cut(self) -> None:
        """The machines that did not do all their examples."""
        cut = dict.fromkeys(result.machine for result in self._results if result.details.get("cut_by_time"))
        if cut:
            self.console.print(f"cut by --max-time: {', '.join(cut)}", highlight=False)

    def _print_not_run(self) -> None:
        """The clauses that no step exercised; releases with the same ones share a line."""
        releases: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for result in self._results:
            missing = tuple(clause for clause, verdict in result.verdicts.items() if verdict == "not-run")
            if missing:
                releases.setdefault((result.machine, missing), []).append(result.release)
        for (machine, missing), names in releases.items():
            said = f"not run by {machine} on {', '.join(names)}: {', '.join(missing)}"
            self.console.print(said, highlight=False, soft_wrap=True)
