"""Implementation that consists of Python objects of the user's own classes."""
