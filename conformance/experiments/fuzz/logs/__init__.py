"""What has to come of the cases of logs, from what the readable reference has found of their batches.

A mutated log has most batches of the log that it was made of. What the reference finds in a batch is remembered by the
place and the bytes of it (:mod:`known_batches`). A segment's own work, which is little, is done on that alone
(:mod:`recovery`, :mod:`questions`): no file is opened, and none is written. A content whose batches have no whole
headers, or whose recovery is refused, is left to the readable reference.
"""
