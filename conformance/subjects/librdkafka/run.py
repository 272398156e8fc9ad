# ruff: noqa: INP001 -- a program of a subject, and no part of the package
"""librdkafka's mock cluster as a separate broker: ``run.py LIB`` prints its address, and runs until SIGTERM.

``LIB`` is the directory in which ``confluent_kafka`` is installed.
"""

import sys
import time

sys.path.insert(0, sys.argv[1])

from confluent_kafka import Producer

# The address is not used: the cluster listens on a free port.
cluster = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "127.0.0.1:9"})
(broker,) = cluster.list_topics(timeout=30).brokers.values()
sys.stdout.write(f"{broker.host}:{broker.port}\n")
sys.stdout.flush()
while True:
    time.sleep(60)
