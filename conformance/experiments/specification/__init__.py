"""Pages of the specification, generated from the clauses, the table of behaviours, the layouts and executed traces."""
