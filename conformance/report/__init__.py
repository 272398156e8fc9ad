"""Writers of the event stream: what a person, a pipeline or another program reads."""
