"""From a verdict to a repair: what verify found broken, rebuilt as a release's recovery would, and what was refused."""

from kidx.repair.next_steps import FROM_A_REPLICA, Advice, advice
from kidx.repair.plan import Plan, Refusal, plan
from kidx.repair.run import Change, Repair, repair_paths

__all__ = ["FROM_A_REPLICA", "Advice", "Change", "Plan", "Refusal", "Repair", "advice", "plan", "repair_paths"]
