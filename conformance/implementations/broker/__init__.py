"""Running broker as an implementation, and the reference with which it is compared."""
