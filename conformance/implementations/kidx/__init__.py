"""The reference: kidx behind the interfaces that the harness drives."""
