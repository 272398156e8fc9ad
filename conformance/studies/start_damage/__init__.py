"""Start with corrupt log directories: what a broker does, compared with the prediction of ``kidx verify``.

One broker fills a partition for each case. It is stopped cleanly, and later killed. This gives two prepared directories
(:mod:`conformance.studies.start_damage.observing`). Cases that affect only one partition share a copy and a start;
every other case gets a separate copy and start. Before each start, kidx predicts the result from the files
(:mod:`kidx.startup`). After the start, the experiment records whether the broker started, which log directories are
offline, and the state and the end of each partition.
"""
