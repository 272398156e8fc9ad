"""An implementation as Python objects of the user's own classes."""
