"""Abstract model: the meaning of an index, as a participant of the lockstep.

The reference and Kafka's own classes are programs. If both have the same mistake, a comparison shows nothing. The model
is a specification instead: an index is a list of (key, value) pairs, a capacity and the position of the next entry. The
bytes of its file follow from these. A lookup has its literal meaning (*the entry with the largest key not above the
target*), without warm and cold sections. The model shares no code with the reference.

``Model.perform`` returns the :class:`Prediction` of an operation: outcome, state and content of the file. A state or a
content that the model cannot predict is :data:`UNKNOWN`, the only value of the type :class:`Unknown`. If the operation
has no such meaning, the model abstains (``perform`` returns None) instead of guessing:

* a search in content that is not in order, or for a key that several different entries share (AI-35, AI-36);
* the number of entries after truncating such content, until ``truncate`` or ``reset`` defines it as 0;
* a file that the harness corrupted, until the next ``open``, for which the harness passes the bytes of the file;
* arguments beyond Kafka's own types, files of more than 64 MiB, and an index after a failed ``open``.

The model follows an operation that fails halfway, because the result has a meaning, too: the write position (see
:class:`~.slots.SlotIndex`) is no longer at the end of the entries.

Modules: :mod:`.slots` is common to offset and time index. :mod:`.offset_index`, :mod:`.time_index` and
:mod:`.transaction_index` are the three kinds, :mod:`.directory` the files on disk, :mod:`.dialect` the differences
between releases, and :mod:`.machine` the model itself.
"""

from __future__ import annotations

from conformance.implementations.model.machine import Model
from conformance.implementations.model.prediction import UNKNOWN, Prediction, Unknown

__all__ = ["UNKNOWN", "Model", "Prediction", "Unknown"]
