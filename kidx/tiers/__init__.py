"""Log of a partition across two tiers: local segments, and those that were copied to remote storage (KIP-405).

:class:`TieredLog` is the log; the tasks of ``RemoteLogManager`` are functions of it (clauses TL).
"""

from kidx.tiers.fetching import RemoteFetch, RemoteReader
from kidx.tiers.metadata import CopiedSegment, RemoteMetadata
from kidx.tiers.tasks import RemoteTasks
from kidx.tiers.tiered_log import TieredConfig, TieredLog

__all__ = ["CopiedSegment", "RemoteFetch", "RemoteMetadata", "RemoteReader", "RemoteTasks", "TieredConfig", "TieredLog"]
