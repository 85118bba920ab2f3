"""Where the documentation has more: addresses of the published pages, and the page of reasons without a network."""

from __future__ import annotations

import functools
import re
from importlib import metadata
from pathlib import Path

PAGE = "docs/reasons.md"


@functools.cache
def site() -> str:
    """The address of the repository's files in the package's metadata, or ""."""
    try:
        urls = metadata.metadata("cinductor").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return ""
    found = [url.partition(", ")[2] for url in urls if url.startswith("Documentation")]
    return found[0].rpartition("/docs/")[0] if found else ""


def of_reason(name: str) -> str:
    """The address of a reason's section, or the command that prints it."""
    return f"{site()}/{PAGE}#{name}" if site() else f"python -m cinductor reasons {name}"


@functools.cache
def sections() -> dict[str, str]:
    """The sections of the page about reasons, by name. A wheel has a copy of it, a checkout the page itself."""
    package = Path(__file__).resolve().parent.parent
    places = (package / "reasons.md", package.parents[1] / PAGE)
    text = next((place.read_text(encoding="utf-8") for place in places if place.is_file()), "")
    parts = re.split(r"^## (\S+)$", text, flags=re.M)[1:]
    return {name: body.strip() for name, body in zip(parts[::2], parts[1::2])}
