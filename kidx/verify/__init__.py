"""Are the indexes of these segments right? Verdicts and findings about whole log directories, without touching them.

``verify_segment`` looks at one segment, ``verify_partition`` at what the segments of a partition say together, and
``verify_paths`` does both for whatever lies under some paths, on several processors::

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
