"""Compiled kernels that write the expected results of every step of a case, for thousands of contents at a time.

Each kernel executes a probe of :mod:`conformance.experiments.fuzz.probes`, and writes the same bytes as the readable
reference (:mod:`conformance.experiments.fuzz.expected`), in every dialect.
"""
