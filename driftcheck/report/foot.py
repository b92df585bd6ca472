"""What stands below reports on the way between two releases: why the older one, and what has to be known besides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from driftcheck.model import TargetSummary
from driftcheck.report.markdown import plain


def release_chosen(release: TargetSummary | None) -> str:
    """Why this release is the one that the client was written for, where nobody named it; "" where somebody did."""
    if release is None or not release.chosen:
        return ""
    return f"from {release.version or release.name}: {release.chosen}"


def markdown_foot(release: TargetSummary | None, notices: Iterable[str]) -> Iterator[str]:
    """The reason and the notices as paragraphs of Markdown, in lines."""
    chosen = release_chosen(release)
    for paragraph in [*([chosen] if chosen else []), *(f"note: {notice}" for notice in notices)]:
        yield ""
        yield plain(paragraph)
