"""Whether a green run means anything: how soon planted defects are found, and which situations a run has been in."""
