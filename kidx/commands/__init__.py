"""Commands of ``kidx``, one module per command."""
