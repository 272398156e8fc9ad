"""Addresses of what the pages name: Kafka's tickets, proposals and pull requests, and the clauses."""

from __future__ import annotations

import os.path
import re
from pathlib import Path

from conformance.clauses import family, load_clauses

_WIKI = "https://cwiki.apache.org/confluence"
_BASES = {
    "KAFKA-": "https://issues.apache.org/jira/browse/KAFKA-",
    "KIP-": f"{_WIKI}/dosearchsite.action?queryString=KIP-",
    "#": "https://github.com/apache/kafka/pull/",
}
_PROPOSALS = {
    "KIP-32": "+-+Add+timestamps+to+Kafka+message",
    "KIP-33": "+-+Add+a+time+based+log+index",
    "KIP-98": "+-+Exactly+Once+Delivery+and+Transactional+Messaging",
    "KIP-101": "+-+Alter+Replication+Protocol+to+use+Leader+Epoch+rather+than+High+Watermark+for+Truncation",
    "KIP-107": "%3A+Add+deleteRecordsBefore%28%29+API+in+AdminClient",
    "KIP-320": "%3A+Allow+fetchers+to+detect+and+handle+log+truncation",
    "KIP-360": "%3A+Improve+reliability+of+idempotent%2Ftransactional+producer",
    "KIP-405": "%3A+Kafka+Tiered+Storage",
    "KIP-467": "%3A+Augment+ProduceResponse+error+messaging+for+specific+culprit+records",
    "KIP-734": "%3A+Improve+AdminClient.listOffsets+to+return+timestamp+and+offset+for+the+record"
    "+with+the+largest+timestamp",
    "KIP-890": "%3A+Transactions+Server-Side+Defense",
    "KIP-937": "%3A+Improve+Message+Timestamp+Validation",
    "KIP-1005": "%3A+Expose+EarliestLocalOffset+and+TieredOffset",
}
"""Ends of the titles in the wiki, which has no address by number; other proposals are searched for."""
_SKIPPED = re.compile(
    r"```.*?```|<pre>.*?</pre>|`[^`\n]*`|\[[^\]]*\]\([^)]*\)|\{ #[^}\n]* \}|<[^>]*>|^#+ .*?$", re.DOTALL | re.MULTILINE
)
_CHAPTERS = "|".join(sorted({each.partition("-")[0] for each in load_clauses()}))
_ELSEWHERE = r"(?<![\w/.-])[\w.-]+/[\w.-]+#\d+\b"
_NAME = re.compile(rf"\b(?:{_CHAPTERS})-\d+[a-z]?\b|\b(?:KAFKA|KIP)-\d+\b|(?<![\w/&#])#\d{{4,5}}\b|{_ELSEWHERE}")


def upstream(name: str) -> str:
    """Return the address of a ticket, a proposal or a pull request, also ``owner/name#1``; empty for another name."""
    if name in _PROPOSALS:
        return f"{_WIKI}/display/KAFKA/{name}{_PROPOSALS[name]}"
    if re.fullmatch(_ELSEWHERE, name):
        return f"https://github.com/{name.replace('#', '/issues/')}"
    base = next((each for each in _BASES if name.startswith(each)), "")
    return _BASES[base] + name.removeprefix(base) if base else ""


def addresses(directory: str) -> dict[str, str]:
    """Return the address of each clause by its id, and by its id without the letter.

    Args:
        directory: directory of the chapters, from the root of the pages.
    """
    known = load_clauses()
    where = {family(each): f"{directory}/{clause.chapter}.md#{each}" for each, clause in reversed(known.items())}
    return where | {each: f"{directory}/{clause.chapter}.md#{each}" for each, clause in known.items()}


def linked(text: str, page: str, known: dict[str, str]) -> str:
    """Return a page on which each ticket, proposal, pull request and clause that the prose names is a link.

    Args:
        text: the page in Markdown.
        page: its path, from the root of the pages.
        known: the address of each clause, from the root of the pages; empty to link none.
    """

    def link(match: re.Match[str]) -> str:
        if address := upstream(match[0]):
            return f"[{match[0]}]({address})"
        target = known.get(match[0])
        return f"[{match[0]}]({os.path.relpath(target, Path(page).parent)})" if target else match[0]

    parts, at = list[str](), 0
    for skipped in _SKIPPED.finditer(text):
        parts += [_NAME.sub(link, text[at : skipped.start()]), skipped[0]]
        at = skipped.end()
    return "".join([*parts, _NAME.sub(link, text[at:])])
