"""Validation of batches before a log appends them (``UnifiedLog.append``, ``LogValidator``; clauses LG-50 to LG-59).

Every topic stores messages of the current format; ``message.format.version`` of releases up to 3.9 is ignored. A batch
whose records remain unchanged gets its final header in place. Other batches are rebuilt.
"""

from __future__ import annotations

from kidx.log.validation.checks import ValidationContext, checked_batches, ensure_allowed_size
from kidx.log.validation.validator import Validated, validate

__all__ = ["Validated", "ValidationContext", "checked_batches", "ensure_allowed_size", "validate"]
