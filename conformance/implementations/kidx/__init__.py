"""Reference: kidx, with the interfaces of an implementation."""
