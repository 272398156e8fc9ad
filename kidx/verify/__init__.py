"""Verification of segments and their index files: verdicts and findings. The files remain unchanged.

``verify_segment`` checks one segment, ``verify_partition`` the segments of a partition together, and ``verify_paths``
does both for all partitions under some paths, on several processors::

    result = verify_paths(["/var/lib/kafka/data"])
    print(result.verdict)
    for finding in result.findings:
        print(finding)
"""

from kidx.findings import Finding, Verdict
from kidx.verify.partition import verify_partition
from kidx.verify.run import Verification, verify_paths
from kidx.verify.segment import verify_segment
from kidx.verify.verdicts import FileVerdict, Interval, PartitionVerdict, SegmentVerdict

__all__ = [
    "FileVerdict",
    "Finding",
    "Interval",
    "PartitionVerdict",
    "SegmentVerdict",
    "Verdict",
    "Verification",
    "verify_partition",
    "verify_paths",
    "verify_segment",
]
