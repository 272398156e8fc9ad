"""Fuzzing of the file formats: corrupt index and log files, opened by kidx and by Kafka's own classes in lockstep.

A *case* is the content of one file. A fixed sequence of operations, a probe (:mod:`probes`), is executed on it in the
machines' lockstep, so that a finding is a trace like any other. :mod:`mutations` chooses the contents. Contents with
new outcomes are kept in the :mod:`corpus` and mutated further.

Kafka's own classes execute thousands of cases per call from Python (:mod:`batches`). The expected result of every step
is written by the kernels of :mod:`compiled` (index files), from known batches (:mod:`logs`), or by the readable
reference (:mod:`expected`), which also checks a sample.
"""
