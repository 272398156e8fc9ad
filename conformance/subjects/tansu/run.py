# ruff: noqa: INP001 -- a program of a subject, and no part of the package
"""Tansu as a separate broker: ``run.py PROGRAM`` starts Tansu's program on a free port and prints its address.

It ends when Tansu ends.
"""

import socket
import subprocess
import sys
import time

with socket.create_server(("127.0.0.1", 0)) as listening:
    port = listening.getsockname()[1]
url = f"tcp://127.0.0.1:{port}"
command = [sys.argv[1], "broker", "--listener-url", url, "--advertised-listener-url", url]
broker = subprocess.Popen([*command, "--storage-engine", "memory://tansu/"], stdout=subprocess.DEVNULL)  # noqa: S603
while broker.poll() is None:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        time.sleep(0.05)
    else:
        sys.stdout.write(f"127.0.0.1:{port}\n")
        sys.stdout.flush()
        break
sys.exit(broker.wait())
