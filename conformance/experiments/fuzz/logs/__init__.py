"""Expected results of the cases of logs, from the readable reference's results for their batches.

A mutated log has most batches of its original. The reference's result for a batch is cached by the batch's position and
bytes (:mod:`known_batches`). The remaining work of a segment, which is little, uses only this cache (:mod:`recovery`,
:mod:`queries`): no file is opened, and none is written. A content with incomplete batch headers, or whose recovery
fails, is left to the readable reference.
"""
