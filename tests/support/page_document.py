"""HTML page, parsed as a browser parses it."""

from __future__ import annotations

from html.parser import HTMLParser


class Document(HTMLParser):
    """Parser that collects balanced tags, ids, links and fetched resources of a page."""

    VOID = frozenset({"meta", "link", "input", "br"})

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.fetched, self.cells, self.row = [], [], [], [], {}, ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag not in self.VOID:
            self.open.append(tag)
        if "id" in found:
            self.ids.append(found["id"])
        if tag == "a":
            self.links.append(found["href"])
        self.fetched += [found[name] for name in ("src", "srcset", "data", "action") if name in found]
        if tag == "link":
            self.fetched.append(found["href"])
        if tag == "tr":
            self.row = found.get("data-words", "").split(" ")[0]
        if tag == "td" and self.row and "class" in found:
            self.cells.setdefault(self.row, []).append(found["class"].removesuffix("-v"))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
