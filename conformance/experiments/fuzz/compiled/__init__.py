"""Expected results of every step of a case, for thousands of contents at a time, by compiled kernels.

Each kernel follows one probe of :mod:`conformance.experiments.fuzz.probes` and writes the same bytes as the readable
reference (:mod:`conformance.experiments.fuzz.expected`), from the same content, in every dialect.
"""
