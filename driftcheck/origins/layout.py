"""Where in a folder of sources the import roots lie, told from the paths alone."""

from __future__ import annotations

from collections.abc import Collection

ASIDE = frozenset(
    (
        "benchmark",
        "benchmarks",
        "ci",
        "csrc",
        "doc",
        "docs",
        "example",
        "examples",
        "script",
        "scripts",
        "test",
        "tests",
        "tools",
    )
)
"""Folders of a project that are not installed with it, as a rule."""


def import_roots(paths: Collection[str]) -> tuple[str, ...]:
    """The prefixes that would stand on `sys.path`, likeliest first; "" is always among them.

    A folder named `src` that is no package is a root, and so is the folder above a topmost package. A folder between
    may be a root or a namespace package: both it and "" are given, so that either way of importing is found.
    """
    packages = {path.rpartition("/")[0] for path in paths if path.rpartition("/")[2] in ("__init__.py", "__init__.pyi")}
    folders = {path.rpartition("/")[0] for path in paths if path.endswith((".py", ".pyi"))}
    roots: set[str] = {""}
    for folder in folders:
        source = _source_folder(folder, packages)
        if source is not None:
            roots.add(source)
            continue
        if folder in packages:
            while folder and folder in packages:
                folder = folder.rpartition("/")[0]
            roots.add(f"{folder}/" if folder else "")
    return tuple(sorted(roots, key=lambda root: (_aside(root), not root.endswith("src/"), root.count("/"), root)))


def _source_folder(folder: str, packages: Collection[str]) -> str | None:
    """The innermost `src/` above or at a folder that is no package itself, None where there is none."""
    parts = folder.split("/")
    for index in range(len(parts) - 1, -1, -1):
        above = "/".join(parts[: index + 1])
        if parts[index] == "src" and above not in packages:
            return f"{above}/"
    return None


def _aside(root: str) -> bool:
    return root.partition("/")[0] in ASIDE


def installed_root(paths: Collection[str], top_level: Collection[str] = ()) -> tuple[str, tuple[str, ...]]:
    """What a source distribution would install: the root that holds it, and the names of its packages and modules.

    `top_level` gives the names where the distribution says them itself.
    """
    for root in import_roots(paths):
        heads: dict[str, bool] = {}
        for path in paths:
            if path.startswith(root) and path.endswith((".py", ".pyi")):
                head, slash, _ = path[len(root) :].partition("/")
                heads[head] = heads.get(head, False) or bool(slash)
        known = [name for name in top_level if name in heads or f"{name}.py" in heads]
        if known:
            return root, tuple(sorted(name if name in heads else f"{name}.py" for name in known))
        packages = [
            head
            for head, is_folder in heads.items()
            if is_folder and head.isidentifier() and head not in ASIDE and f"{root}{head}/__init__.py" in paths
        ]
        if packages and not _aside(root):
            return root, tuple(sorted(packages))
    modules = [path for path in paths if "/" not in path and path.endswith(".py") and path != "setup.py"]
    folders = {path.partition("/")[0] for path in paths if "/" in path and path.endswith((".py", ".pyi"))}
    return "", tuple(sorted(modules or folders - ASIDE))


def packages_of(paths: Collection[str], roots: tuple[str, ...]) -> tuple[str, ...]:
    """The folders of the top-level packages that are not set aside, with a slash at the end, sorted."""
    found: set[str] = set()
    for path in paths:
        for root in roots:
            head, slash, rest = path[len(root) :].partition("/") if path.startswith(root) else ("", "", "")
            if slash and rest in ("__init__.py", "__init__.pyi") and head not in ASIDE and not _aside(root):
                found.add(f"{root}{head}/")
    return tuple(sorted(found))


def import_names(paths: Collection[str], roots: tuple[str, ...]) -> tuple[str, ...]:
    """The names under which a distribution is imported: its top-level packages, else its modules, sorted."""
    names = {package.rstrip("/").rpartition("/")[2] for package in packages_of(paths, roots)}
    if not names:
        tops = {path[len(root) :] for path in paths for root in roots if path.startswith(root)}
        names = {
            top.partition(".")[0] for top in tops if "/" not in top and top.endswith((".py", ".pyi", ".so", ".pyd"))
        }
    return tuple(sorted(names - {"setup", "conftest"}))
