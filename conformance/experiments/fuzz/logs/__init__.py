"""Expected results of the cases of logs, from cached results of the readable reference for their batches.

A mutated log shares most batches with its original. The reference's results for a batch are cached by position and
bytes of the batch (:mod:`known_batches`). :mod:`recovery` and :mod:`queries` compute the results for a segment from
this cache, without opening or writing files. If a batch header is incomplete, or a recovery fails, the readable
reference executes the case.
"""
