"""Terminal output of a run: progress while it runs, divergences, and a table at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from conformance.events import Diverged, Progressed, Replayed, Result, RunFinished, RunStarted
from conformance.report.console import escape_for_console, in_lines, sanitizing
from conformance.report.divergence import format_divergence
from conformance.report.remarks import describe_failures, in_few_words, tolerated
from conformance.runs import broker_table
from conformance.runs.completeness import clauses_compared, compared_in
from conformance.runs.profiles import format_seed
from conformance.verdict import ALLOW_INCOMPLETE, VERDICT_LABELS
from kidx.printable import counted

if TYPE_CHECKING:
    from rich.console import Console

    from conformance.events import Event


class TerminalWriter:
    """Printer of events: a progress bar on a terminal, plain lines anywhere else.

    Args:
        console: console for the results.
        quiet: True to print only divergences and the verdict.
        verbose: True to list the clauses that no step exercised.
        allow_incomplete: True if an incomplete run is accepted, which the last line then says.
    """

    def __init__(
        self, console: Console, *, quiet: bool = False, verbose: bool = False, allow_incomplete: bool = False
    ) -> None:
        self.console = sanitizing(console)
        self.quiet = quiet
        self.verbose = verbose
        self.allow_incomplete = allow_incomplete
        self._level = "observed"
        self._results: list[Result] = []
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._machine = ""
        self._divergences: list[Diverged] = []
        if console.is_terminal and not quiet:
            columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"))
            self._progress = Progress(*columns, TimeElapsedColumn(), console=console, transient=True)

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._progress is not None:
            self._progress.stop()
        self._print_divergences()  # an interrupted run has not printed them yet

    def __call__(self, event: Event) -> None:
        """Print one event."""
        match event:
            case RunStarted():
                self._start(event)
            case Replayed() if not self.quiet:
                text = f"{len(event.traces)} regression traces replayed, {len(event.diverged)} diverged"
                self.console.print(f"{event.machine} machine: {text}", highlight=False)
            case Progressed():
                self._advance(event)
            case Diverged():
                self._divergences.append(event)
            case Result():
                self._results.append(event)
            case RunFinished():
                self._finish(event)
            case _:
                pass

    def _start(self, event: RunStarted) -> None:
        self._level = event.level
        if self.quiet:
            return
        releases = ", ".join(event.releases)
        self.console.print(
            f"{escape_for_console(', '.join(event.implementations))} against kidx · releases {releases} · "
            f"profile {event.profile} · level {event.basis} · seed {format_seed(event.seed, event.seed_source)}",
            highlight=False,
            soft_wrap=True,
        )

    def _advance(self, event: Progressed) -> None:
        text = f"{event.examples} examples, {event.steps} steps"
        if self._progress is None:
            if not self.quiet and event.fraction_done >= 1.0 and self._machine != event.machine:
                self._machine = event.machine
                self.console.print(f"{event.machine} machine: {text}", highlight=False)
            return
        if self._task is None or self._machine != event.machine:
            if self._task is not None:
                self._progress.remove_task(self._task)
            self._machine = event.machine
            self._task = self._progress.add_task(f"{event.machine} machine", total=1.0, text="")
        self._progress.update(self._task, completed=event.fraction_done, text=text)

    def _finish(self, event: RunFinished) -> None:
        if self._progress is not None:
            self._progress.stop()
        count = len(self._divergences)
        stale = event.details.get("stale", [])
        if self._divergences and not self.quiet:
            self.console.print(f"DIVERGES: {counted(count, 'unique divergence')}", style="bold red", highlight=False)
        self._print_divergences()
        for expectation in stale:
            text = f"stale expectation, which no divergence matches any more: {expectation}"
            self.console.print(text, markup=False, highlight=False, soft_wrap=True)
        if not self.quiet:
            for expectation in event.details.get("not seen", []):
                text = f"expected but not reproduced: {expectation}"
                self.console.print(text, markup=False, highlight=False, soft_wrap=True)
            self.console.print(self._table())
            self._print_legend()
            self._print_brokers()
            self._print_not_driven()
            self._print_tolerated()
            self._print_failures()
            if self.verbose:
                self._print_not_run()
        excuses = event.details.get("expected", [])
        for expectation in excuses:
            text = f"expected, so it does not count: {expectation}"
            self.console.print(text, markup=False, highlight=False, soft_wrap=True)
        self._print_changes(event)
        missing = event.details.get("missing", [])
        for reason in missing:
            self.console.print(f"not compared: {reason}", markup=False, highlight=False, soft_wrap=True)
        verdict = self._closing_words(event, count, len(stale), len(missing))
        if verdict.startswith(("conforms", "INCOMPLETE")):
            compared, applicable = clauses_compared(self._results, self._level)
            verdict += f" · {compared} of {applicable} clauses compared" if applicable else ""
        verdict += f" · {counted(len(excuses), 'expectation')} used" if excuses else ""
        self.console.print(f"{verdict} · {event.steps} steps in {event.seconds:.1f} s", highlight=False)

    def _print_changes(self, event: RunFinished) -> None:
        """Print what has changed in the catalogue since the edition of the run."""
        for how, clauses in event.details.get("edition", {}).items():
            text = f"{how} since the edition: {', '.join(clauses)}"
            self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _closing_words(self, event: RunFinished, divergences: int, stale: int, missing: int) -> str:
        """Return the beginning of the last line: the verdict."""
        if divergences or event.verdict == "diverges":
            return f"DIVERGES: {counted(divergences, 'divergence')}, see above"
        if stale:
            return f"FAILS: {counted(stale, 'stale expectation')}, no divergence"
        if event.verdict == "nothing-compared":
            return "NOTHING COMPARED: no verdict"
        if event.verdict == "incomplete":
            accepted = self.allow_incomplete and compared_in(self._results, 0).is_only_short
            allowed = f", which {ALLOW_INCOMPLETE} accepts" if accepted else ""
            return f"INCOMPLETE: no divergence, but {counted(missing, 'gap')}, see above{allowed}"
        return "conforms"

    def _print_divergences(self) -> None:
        for event in self._divergences:
            self.console.print()
            self.console.print(format_divergence(event), markup=False, highlight=False, soft_wrap=True)
            self.console.print()
        self._divergences.clear()

    def _table(self) -> Table:
        lacking = any(result.count("unsupported") and not result.unsupported for result in self._results)
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("release", no_wrap=True)
        table.add_column("implementation", overflow="fold")
        table.add_column("machine", no_wrap=True)
        failed = any(result.count("could-not-run") for result in self._results)
        headings = ["examples", "steps", "steps/s", "divergences", "clauses", "not run"]
        headings += [VERDICT_LABELS["could-not-run"]] * failed + [VERDICT_LABELS["unsupported"]] * lacking
        for heading in headings:
            table.add_column(heading, justify="right", no_wrap=True)
        absent: dict[tuple[str, str], list[str]] = {}
        for result in self._results:
            if result.unsupported:
                absent.setdefault((result.implementation, result.machine), []).append(result.release)
        for result in self._results:
            backend = result.details.get("backend")
            name = in_lines(f"{result.implementation} ({backend})" if backend else result.implementation)
            if result.unsupported:
                releases = absent.pop((result.implementation, result.machine), None)
                if releases:  # one row for all releases
                    text = ("–",) * 4 + (VERDICT_LABELS["unsupported"], "–")
                    table.add_row(in_few_words(releases), name, result.machine, *text, style="dim")
                continue
            rate = result.steps / result.seconds if result.seconds else 0.0
            missing, unsupported = result.count("not-run"), result.count("unsupported")
            impossible = result.count("could-not-run")
            applicable = len(result.verdicts) - unsupported
            table.add_row(
                result.release,
                name,
                result.machine,
                str(result.examples),
                str(result.steps),
                f"{rate:.0f}",
                f"[bold red]{result.divergences}[/]" if result.divergences else "0",
                f"{applicable - missing - impossible}/{applicable}",
                str(missing),
                *([str(impossible)] if failed else []),
                *([str(unsupported)] if lacking else []),
            )
        return table

    def _print_legend(self) -> None:
        """Print the meaning of the columns."""
        if not any(not result.unsupported for result in self._results):
            return
        lacking = any(result.count("unsupported") for result in self._results)
        text = (
            "divergences: unique ones · clauses: exercised/applicable · not run: applicable, but no step exercised them"
            f"{'' if self.verbose else ' (-v lists them)'}"
        )
        if any(result.count("could-not-run") for result in self._results):
            text += " · could not run: a step exercised them, and the implementation had failed before or rejected it"
        text += " · does not apply: they need operations that the implementation does not have" if lacking else ""
        if any("takes_turns" in result.details for result in self._results):
            text += " · examples: each generated one is run on one of the releases with the same rules, in turn"
        self.console.print(text, style="dim", highlight=False, soft_wrap=True)

    def _print_brokers(self) -> None:
        """Print the comparisons with real brokers, if any took part."""
        found = [row for result in self._results for row in broker_table.measured(result)]
        if found:
            table = Table("release", box=None, pad_edge=False, header_style="bold")
            for heading in found[0].figures:
                table.add_column(heading, justify="left" if heading in ("backend", "mode") else "right")
            for row in found:
                table.add_row(row.name, *row.figures.values())
            self.console.print()
            self.console.print(table)

    def _print_not_driven(self) -> None:
        """Print the reasons why builds cannot be tested."""
        reasons = [str(result.details.get("why", "")) for result in self._results if result.unsupported]
        for reason in filter(None, dict.fromkeys(reasons)):
            self.console.print(reason, markup=False, highlight=False, soft_wrap=True)

    def _print_tolerated(self) -> None:
        """Print the differences that were tolerated because an implementation lacks a capability."""
        for line in tolerated(self._results):
            self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _print_failures(self) -> None:
        """Print the programs that failed during examples."""
        for line in filter(None, map(describe_failures, self._results)):
            self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _print_not_run(self) -> None:
        """Print the clauses that no step exercised; releases with the same clauses share a line."""
        releases: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for result in self._results:
            missing = tuple(clause for clause, verdict in result.verdicts.items() if verdict == "not-run")
            if missing:
                releases.setdefault((result.machine, missing), []).append(result.release)
        for (machine, missing), names in releases.items():
            text = f"clauses not run by {machine} on {', '.join(names)}: {', '.join(missing)}"
            self.console.print(text, highlight=False, soft_wrap=True)
