"""What has to come of every step of a case, for thousands of contents at once, by compiled kernels.

Each kernel follows one script of :mod:`conformance.experiments.fuzz.scripts` and writes the same bytes as the readable
reference (:mod:`conformance.experiments.fuzz.expected`), from the same content, in every dialect.
"""
