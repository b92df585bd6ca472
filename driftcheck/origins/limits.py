"""What is read of archives and folders, and the bounds beyond which they are refused."""

MEMBER_BYTES = 20_000_000
"""Uncompressed bytes of one file that is read."""

KEPT_BYTES = 400_000_000
"""Uncompressed bytes of all files of an archive that are read."""

MEMBERS = 100_000
"""Members of an archive, and Python files of a folder."""

DIRECTORY_BYTES = 16_000_000
"""Bytes of a zip's directory, and of one header of a tar."""

STREAM_BYTES = 2_000_000_000
"""Uncompressed bytes of a source distribution, the files that are skipped included."""

DOWNLOAD_BYTES = 2_000_000_000
"""Bytes of an archive that has to be downloaded whole."""

PAGE_BYTES = 64_000_000
"""Bytes of an index page."""

SOURCE_SUFFIXES = (".py", ".pyi")
"""What is read."""

EXTENSION_SUFFIXES = (".so", ".pyd")
"""What is listed, since it can be imported, and not read."""
