"""Reference: kidx, with the interfaces that the harness drives."""
