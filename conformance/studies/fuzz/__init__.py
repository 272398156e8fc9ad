"""Fuzzing of the file formats: corrupt index and log files, opened by kidx and by Kafka's own classes in lockstep.

A *case* is the content of one file, and the *probe* of this content: the operations that open and query the file
(:mod:`probes`). A lockstep executes the probe, so that a finding is a trace like any other. :mod:`mutations` creates
the contents. Contents with new outcomes are added to the :mod:`corpus` and mutated further.

Kafka's own classes execute thousands of cases per call from Python (:mod:`batches`). Java returns a digest of the
results of each case. Releases that must have the same results are compared with each other; kidx executes the cases
that show something new, and a sample of the others (:mod:`expected`).
"""
