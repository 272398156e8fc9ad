"""The abstract model: what an index means, as a participant of the lockstep.

The reference and Kafka's own classes are programs; where both have the same mistake, comparing them shows nothing.
The model is a specification instead: an index is a list of (key, value) pairs, a capacity and the place where the next
entry goes. The bytes of its file follow from those, and a lookup is what the word says – *the entry with the largest
key not above the target* – with no warm and cold section in it. It shares no code with the reference.

Where a meaning like that does not exist, the model abstains (``perform`` returns None) instead of guessing:

* a search in content that is not in order, or for a key that several different entries share (AI-35, AI-36);
* the number of entries after truncating such content, until ``truncate`` or ``reset`` says it is 0;
* a file that the harness damaged, until an ``open`` passes its bytes;
* arguments that Kafka's own types cannot hold, files of more than 64 MiB, and an index after a refused ``open``.

It does follow an operation that fails half-way, since what is left behind has a meaning too: the pen (see
:class:`~.slots.SlotIndex`) is no longer at the end of the entries.

Files: :mod:`.slots` is what offset and time index share; :mod:`.offset_index`, :mod:`.time_index` and
:mod:`.transaction_index` the three kinds; :mod:`.directory` the files on disk; :mod:`.dialect` what differs between
releases; :mod:`.machine` the model.
"""

from __future__ import annotations

from conformance.implementations.model.machine import Model
from conformance.implementations.model.prediction import UNKNOWN, Prediction, Unknown

__all__ = ["UNKNOWN", "Model", "Prediction", "Unknown"]
