"""One module for each command of ``kidx``."""
