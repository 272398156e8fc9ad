"""Running broker as an implementation, and the reference that it is compared with."""
