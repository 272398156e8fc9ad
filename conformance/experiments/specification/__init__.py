"""Pages of the specification, made from the catalogue, the table of behaviours, the layouts and executed traces."""
