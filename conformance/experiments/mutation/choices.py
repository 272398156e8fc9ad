"""Proof that MUST means promised: what a clause leaves open conforms at level must, and is found at its own level.

A choice (:mod:`conformance.implementations.mutants.choices`) differs from Kafka only in what an API or OBSERVED clause
says, and in what follows from it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from conformance.clauses import load_clauses
from conformance.experiments.mutation.measuring import MAX_EXAMPLES, run_watched
from conformance.implementations.mutants import MUTANTS, implementation_of
from conformance.implementations.mutants.choices import CHOICES
from conformance.kafka.releases import RELEASES
from conformance.lockstep.divergence import decide
from conformance.lockstep.watchdog import STEP_TIMEOUT_S
from conformance.machines import MACHINES
from conformance.runs.chunks import chunks_of, run_chunk
from conformance.runs.profiles import PROFILES
from conformance.runs.replay import load_regression_traces, replay_operations
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from conformance.implementations.mutants import Mutant
    from conformance.lockstep import Divergence, DivergenceError
    from conformance.lockstep.divergence import Decision
    from conformance.operations import Json


@dataclass(frozen=True)
class ChoiceResult:
    """Result of a choice with one seed.

    Attributes:
        conforms: True if it conforms at level must.
        found: True if it is found at the level of its clause.
        release: The release in which it does not conform at level must; empty if it conforms.
        clauses: The clauses of that divergence.
        differs: The expected and the actual value of that divergence.
        steps: The steps of that divergence.
    """

    choice: str
    seed: int
    conforms: bool
    found: bool
    release: str = ""
    clauses: tuple[str, ...] = ()
    differs: tuple[str, str] = ("", "")
    steps: tuple[str, ...] = ()

    def to_json(self) -> Json:
        """Return the JSON that the command prints."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def releases_of(choice: Mutant) -> tuple[str, ...]:
    """Return the releases to which the clause of a choice applies, one of those that behave alike."""
    scope = MACHINES[choice.machine].lockstep_type.scope
    clause = load_clauses()[choice.clause]
    alike = {scope.rules(release): release for release in RELEASES if clause.applies_to(release)}
    return tuple(alike.values())


def judge(
    name: str, seed: int, *, releases: Sequence[str] | None = None, profile: str = "ci", examples: int | None = None
) -> ChoiceResult:
    """Run a choice at level must and at the level of its clause.

    Args:
        name: The name of the choice.
        releases: The releases at level must; if None, the result of :func:`releases_of`.
        profile: The profile, which sets the steps and the number of examples.
        examples: The number of examples at level must; if None, the profile sets it.

    Raises:
        DivergenceError: The reference itself diverges from the model.
    """
    choice = CHOICES[name]
    own = load_clauses()[choice.clause].level.lower()
    count = examples or PROFILES[profile].examples_of(choice.machine)
    failure = _diverging(choice, "must", seed, releases or releases_of(choice), profile, count)
    found = _diverging(choice, own, seed, (choice.release,), profile, MAX_EXAMPLES, of_traces=True) is not None
    if failure is None:
        return ChoiceResult(name, seed, conforms=True, found=found)
    divergence = failure.divergence
    return ChoiceResult(
        name,
        seed,
        conforms=False,
        found=found,
        release=divergence.release,
        clauses=divergence.clauses,
        differs=(str(divergence.expected), str(divergence.actual)),
        steps=tuple(map(str, failure.operations)),
    )


def pairs_of(machine: str) -> list[tuple[Mutant, Mutant]]:
    """Return each choice of a machine with each defect of it that breaks a promise and changes another function."""
    catalogue = load_clauses()
    defects = [each for each in MUTANTS.values() if each.machine == machine and catalogue[each.clause].level == "MUST"]
    return [
        (choice, defect)
        for choice in CHOICES.values()
        if choice.machine == machine
        for defect in defects
        if choice.attribute == defect.attribute and defect.release in catalogue[choice.clause].releases
        if _can_be_together(choice, defect)
    ]


def _can_be_together(choice: Mutant, defect: Mutant) -> bool:
    """Return True if two changes of one class do not replace each other."""
    kinds = [each.defect for each in (choice, defect)]
    if any(issubclass(kind, choice.reference) for kind in kinds):
        return False
    base = getattr(choice.reference, choice.attribute)
    own = [{name for kind in each.__mro__ if kind not in base.__mro__ for name in vars(kind)} for each in kinds]
    return not {
        name for name in own[0] & own[1] if name != "_abc_impl" and (not name.startswith("__") or name == "__init__")
    }


def finds_both(choice: Mutant, defect: Mutant, seed: int, *, profile: str = "ci", examples: int = 300) -> bool:
    """Return True if a defect is found at level must in an implementation that also makes a choice.

    Args:
        defect: The defect, which breaks a promise.
        profile: The profile, which sets the steps of an example.
        examples: The maximum number of examples.

    Raises:
        DivergenceError: The reference itself diverges from the model.
    """
    both = replace(defect, name=f"{defect.name}+{choice.name}", build=lambda: _together(choice, defect))
    return _diverging(both, "must", seed, (defect.release,), profile, examples) is not None


def _together(choice: Mutant, defect: Mutant) -> type:
    return type("Both", (choice.defect, defect.defect), {})


def _diverging(
    choice: Mutant,
    level: str,
    seed: int,
    releases: Iterable[str],
    profile: str,
    examples: int,
    *,
    of_traces: bool = False,
) -> DivergenceError | None:
    """Return the first divergence that counts at a level, or None.

    Args:
        of_traces: True to replay the regression traces first, as a run does.
    """
    machine = MACHINES[choice.machine]

    def decided(divergence: Divergence) -> Decision:
        return decide(divergence, level, tolerated=not divergence.counts(level))

    with scratch_directory() as scratch:
        subjects = [implementation_of(choice, release) for release in releases]
        lockstep = machine.new_lockstep(subjects, scratch, on_divergence=decided)
        lockstep.drop_models()
        lockstep.count_at(level)
        settings = PROFILES[profile].settings(examples)

        def perform() -> None:
            for trace in load_regression_traces(choice.machine) if of_traces else ():
                replay_operations(lockstep, trace.operations)
            for chunk in chunks_of(choice.machine, examples, seed):
                run_chunk(machine.bind(lockstep), settings, chunk.seed, chunk.examples)

        failure: DivergenceError | None = lockstep.first_failure(perform)
    return failure


def judge_all(
    names: Sequence[str],
    seeds: Sequence[int],
    *,
    jobs: int | None = None,
    on_result: Callable[[ChoiceResult], None] = lambda _: None,
    step_timeout: float = STEP_TIMEOUT_S,
    **options: Any,
) -> list[ChoiceResult]:
    """Run choices in worker processes, each with every seed.

    Args:
        names: The names of the choices.
        jobs: The number of worker processes; the number of processors if None.
        on_result: A callback that receives each result.
        step_timeout: The maximum duration of a step in seconds.
        **options: Further arguments for the run of each choice.

    Raises:
        WorkerHangError: A step of a choice hangs; the message contains the choice.
    """
    results = list[ChoiceResult]()

    def note(result: ChoiceResult) -> None:
        results.append(result)
        on_result(result)

    tasks = [(CHOICES[name], seed) for seed in seeds for name in names]
    run_watched(judge, tasks, note, jobs=jobs, step_timeout=step_timeout, **options)
    return sorted(results, key=lambda each: (names.index(each.choice), each.seed))
