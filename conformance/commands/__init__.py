"""Commands of ``conformance``, one file each: arguments and printing without further logic."""
