"""Fuzzing of the file formats: damaged index and log files, opened by kidx and by Kafka's own classes in lockstep.

A *case* is the content of one file. What is done with it is a fixed script of operations (:mod:`scripts`), performed in
the same lockstep as the machines', so that a finding is a trace like any other. Which contents are tried is decided by
:mod:`mutations`; contents whose outcomes are new are kept in the :mod:`corpus` and mutated further.

Kafka's own classes perform thousands of cases in one crossing (:mod:`batches`): what has to come of every step is
written by the kernels of :mod:`compiled` (index files), from what is known of batches (:mod:`logs`), or by the readable
reference (:mod:`expected`), which also checks a sample.
"""
