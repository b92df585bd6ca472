"""The bounds on what comes from outside: beyond them an archive or a folder is refused."""

MEMBER_BYTES = 20_000_000
"""Uncompressed bytes of one file that is read."""

KEPT_BYTES = 400_000_000
"""Uncompressed bytes of all files of an archive that are read."""

MEMBERS = 100_000
"""Members of an archive, and Python files of a folder."""

STREAM_BYTES = 2_000_000_000
"""Uncompressed bytes of a source distribution, the files that are skipped included."""

DOWNLOAD_BYTES = 2_000_000_000
"""Bytes of an archive that has to be downloaded whole."""

PAGE_BYTES = 64_000_000
"""Bytes of an index page."""
