"""The commands of ``conformance``, one file each: arguments and printing, no logic of their own."""
