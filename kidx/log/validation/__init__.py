"""What becomes of batches before a log appends them (``UnifiedLog.append``, ``LogValidator``; clauses LG-50 to LG-59).

Topics keep messages of the current format here; ``message.format.version`` of releases up to 3.9 is not looked at.
Batches that stay as they are get their final header in place; others are built anew.
"""

from __future__ import annotations

from kidx.log.validation.analysis import checked_batches, ensure_allowed_size
from kidx.log.validation.terms import Terms
from kidx.log.validation.validator import Validated, validate

__all__ = ["Terms", "Validated", "checked_batches", "ensure_allowed_size", "validate"]
