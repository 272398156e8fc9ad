"""Implementations side by side: what each came to in each area, from streams of runs that may be from anywhere."""
