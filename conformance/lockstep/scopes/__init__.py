"""Scopes: the kinds of object that a lockstep tests (index, segment, log, a topic of a broker).

The scopes of a tiered log and of a cache are in the modules of their machines (:mod:`conformance.machines`).
"""
