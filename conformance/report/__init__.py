"""Writers of the event stream, for people, pipelines and other programs."""
