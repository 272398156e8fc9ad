"""Operation: one call with its arguments, as plain data with the JSON form of the line protocol's requests."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.clauses.machines import MACHINES
from conformance.operations.op import Effect, Op, effects, signatures

if TYPE_CHECKING:
    from conformance.operations.outcomes import Json


def _operations_in(module: str) -> dict[str, Op]:
    """Return the operations that a module declares, such as ``CACHE_OPS`` of ``cache``."""
    declared: dict[str, Op] = resolve_name(f"conformance.operations.{module}:{module.upper()}_OPS")
    return declared


OPS: Final = {
    name: each for machine, use in MACHINES.items() for name, each in _operations_in(use.base or machine).items()
}
"""The operations of all machines. No two have the same name."""


def operations_of(machine: str) -> dict[str, Op]:
    """Return the operations that a machine executes, by name."""
    declared = _operations_in(MACHINES[machine].base or machine)
    return {name: each for name, each in declared.items() if not each.of or machine in each.of}


@cache
def every_signature() -> Mapping[str, tuple[str, ...]]:
    """Return the argument names of the operations of all machines."""
    return signatures(OPS)


@cache
def every_effect() -> Mapping[str, Effect]:
    """Return the effects of the operations of all machines."""
    return effects(OPS)


class Operation(NamedTuple):
    """Call of an operation: its name, and the arguments in the order of :func:`every_signature`."""

    name: str
    args: tuple[Any, ...] = ()

    @property
    def effect(self) -> Effect | None:
        """The effect on the object of the operation, or None if it neither opens, releases nor corrupts it."""
        return every_effect().get(self.name)

    @property
    def needs_opening(self) -> bool:
        """True if the operation is only possible after an opening."""
        return self.effect is not Effect.OPENS and not (self.name in OPS and OPS[self.name].early)

    def to_json(self) -> Json:
        """Return the request of the line protocol."""
        return {"op": self.name, **dict(zip(every_signature()[self.name], self.args, strict=True))}

    @classmethod
    def from_json(cls, data: Json) -> Operation:
        """Return the operation of a request.

        Raises:
            ValueError: The operation is unknown, or the request does not have exactly the arguments of the operation.
        """
        name = data.get("op")
        if not isinstance(name, str) or name not in every_signature():
            raise ValueError(f"unknown operation {name!r}")
        names = every_signature()[name]
        given = set(data) - {"op"}
        if given != set(names):
            raise ValueError(
                f"operation {name!r} takes {', '.join(names) or 'nothing'}, not {', '.join(sorted(given))}"
            )
        return cls(name, tuple(data[argument] for argument in names))

    def __str__(self) -> str:
        arguments = ", ".join(f"{n}={v!r}" for n, v in zip(every_signature()[self.name], self.args, strict=True))
        return f"{self.name}({arguments})"
