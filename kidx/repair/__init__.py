"""Repair of the files that a verification found broken: a file is rebuilt as in a recovery, or remains unchanged."""

from kidx.repair.next_steps import FROM_A_REPLICA, Advice, advice
from kidx.repair.plan import Plan, RemainingFault, plan
from kidx.repair.run import Change, Repair, repair_paths

__all__ = ["FROM_A_REPLICA", "Advice", "Change", "Plan", "RemainingFault", "Repair", "advice", "plan", "repair_paths"]
