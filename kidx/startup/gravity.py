"""Gravity of a verification's result: from which gravity on the exit code of ``kidx verify`` is 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, get_args

from kidx.findings import HARMLESS

if TYPE_CHECKING:
    from kidx.startup.start import Start
    from kidx.verify import Verification

Gravity = Literal["start", "loss", "broken", "sound-only", "remark"]
"""The worst first. *start*: a start would do harm, or its effect is unknown; *loss*: records were lost before, and
nothing explains it; *broken*: a file is broken, missing or unreadable; *sound-only*: a file is sound and not exact;
*remark*: there is a remark."""

GRAVITIES: Final[tuple[Gravity, ...]] = get_args(Gravity)
DEFAULT: Final[Gravity] = "broken"


def gravity_of(result: Verification, start: Start | None) -> Gravity | None:
    """Return the gravity of the worst finding; None if every file is exact and there is nothing to say.

    Args:
        result: result of the verification.
        start: prediction of the start; None without one.
    """
    found: dict[Gravity, bool] = {
        "start": start is not None and start.answer in {"no", "unknown"},
        "loss": start is not None and bool(start.lost),
        "broken": result.verdict not in HARMLESS,
        "sound-only": any(file.verdict == "sound" for file in result.files),
        "remark": bool(result.findings),
    }
    return next((gravity for gravity in GRAVITIES if found[gravity]), None)


def is_failure(result: Verification, start: Start | None, fail_on: Gravity = DEFAULT) -> bool:
    """Return True if the worst finding is at least as grave as ``fail_on``."""
    gravity = gravity_of(result, start)
    return gravity is not None and GRAVITIES.index(gravity) <= GRAVITIES.index(fail_on)
