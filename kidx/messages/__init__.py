"""Records that a broker writes for itself, read with the definitions of its release."""
