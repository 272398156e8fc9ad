"""Builder of the site: ``python3 bootstrap.py python docs/build_site.py DIR [RUN ...]``.

It copies the pages to ``DIR/pages`` in the layout of the repository, lets ``conformance site`` add the specification,
links each clause, ticket, proposal and pull request that a page names to its address, and has Zensical build
``DIR/site`` with links checked. MkDocs is no longer maintained and MkDocs Material has ended with it; Zensical is its
successor and reads the same ``mkdocs.yml``.
"""

from __future__ import annotations

import argparse
import os.path
import re
import shutil
import subprocess
import sys
from pathlib import Path

from links import addresses, linked

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "tests/README.md")
READERS = "tests/vectors"
UNSEARCHED = ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "specification/changes.md")
"""Pages that mention everything, and answer nothing that another page does not."""
_SPECIFICATION = re.compile(r"\]\(((?:\.\./)*)(docs/)?spec/(\w+)\.md")


def redirected(text: str, page: str) -> str:
    """Return a page whose links to docs/spec lead to the site's own pages of the specification."""

    def link(match: re.Match[str]) -> str:
        name = "index" if match[3] == "README" else match[3]
        return f"]({os.path.relpath(f'specification/{name}.md', Path(page).parent)}"

    return _SPECIFICATION.sub(link, text)


def copy_pages(pages: Path) -> None:
    """Copy the pages of the repository and what they show."""
    for name in PAGES:
        (pages / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, pages / name)
    for name in ("docs", "reports", "findings"):
        shutil.copytree(ROOT / name, pages / name, ignore=shutil.ignore_patterns("*.py", "__pycache__", "spec"))
    shutil.copytree(ROOT / READERS, pages / READERS, ignore=shutil.ignore_patterns("__pycache__"))


def main() -> None:
    """Build the site; end with the exit code of what fails."""
    parser = argparse.ArgumentParser(description="Build the site in DIR/site.")
    parser.add_argument("directory", metavar="DIR", type=Path, help="new directory")
    parser.add_argument("runs", metavar="RUN", nargs="*", help="directories of `conformance run --report DIR`")
    parser.add_argument("--machine", action="append", default=[], help="execute the traces of these machines only")
    parser.add_argument("--history", metavar="FILE", type=Path, help="earlier results, to which these are added")
    asked = parser.parse_args()
    pages = asked.directory / "pages"
    if pages.exists():
        sys.exit(f"{pages} exists; choose a new directory")
    copy_pages(pages)
    tools = Path(sys.executable).parent
    words = [word for name in asked.machine for word in ("--machine", name)]
    words += ["--history", str(asked.history.resolve())] if asked.history else []
    words += ["--traces", "tests/meta/kills.ndjson", str(pages.resolve() / "specification"), *asked.runs]
    subprocess.run([tools / "conformance", "site", *words], cwd=ROOT, check=True)  # noqa: S603
    known = addresses("specification")
    for path in pages.rglob("*.md"):
        page = str(path.relative_to(pages))
        head = "---\nsearch:\n  exclude: true\n---\n" if page in UNSEARCHED else ""
        path.write_text(head + linked(redirected(path.read_text("utf-8"), page), page, known), "utf-8")
    shutil.copy(ROOT / "mkdocs.yml", asked.directory)
    built = subprocess.run([tools / "zensical", "build", "--strict"], cwd=asked.directory, check=False)  # noqa: S603
    (asked.directory / "site" / "sitemap.xml").unlink(missing_ok=True)  # empty, for the site has no address yet
    sys.exit(built.returncode)


if __name__ == "__main__":
    main()
