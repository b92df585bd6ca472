"""What a project's own files say of it before it is built: pyproject.toml, PKG-INFO, setup.cfg, setup.py."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from driftcheck.origins.metadata import Metadata, parse_core_metadata, parse_toml, with_extra

if TYPE_CHECKING:
    from collections.abc import Collection

Read = Callable[[str], "bytes | None"]
"""The bytes of a file below the project's folder, None where there is none."""

_VERSION_FILES = ("_version.py", "__about__.py", "version.py", "__version__.py", "__init__.py")
_VERSION = re.compile(
    rb"""^(?:__version__|version)\s*(?::\s*str\s*)?(?:=\s*version\s*)?=\s*["']([^"'\s]+)["']""", re.MULTILINE
)


def read_project(read: Read) -> Metadata:
    """Name, version and requirements as far as the project's files state them; what can't be parsed is passed over."""
    built = _from_core_metadata(read)
    if built.requirements:
        return built
    stated = (_from_pyproject(read), built, _from_setup_cfg(read), _from_setup_py(read))
    requirements: list[str] = []
    for about in stated:
        requirements += [text for text in about.requirements if text not in requirements]
    if not requirements:
        requirements = list(_requirement_lines(read("requirements.txt")))
    return Metadata(
        name=next((about.name for about in stated if about.name), None),
        version=next((about.version for about in stated if about.version), None),
        requirements=tuple(requirements),
    )


def stated_version(read: Read, packages: Collection[str]) -> str | None:
    """The version that a package states in its own sources; `packages` are folders, with a slash at the end."""
    for package in packages:
        for name in _VERSION_FILES:
            match = _VERSION.search(read(f"{package}{name}") or b"")
            if match is not None:
                return match[1].decode("utf-8", "replace")
    return None


def _from_pyproject(read: Read) -> Metadata:
    data = read("pyproject.toml")
    if data is None:
        return Metadata()
    try:
        tables = parse_toml(data)
    except ValueError:
        return Metadata()
    project = _table(tables.get("project"))
    tool = _table(tables.get("tool"))
    poetry = _table(tool.get("poetry"))
    requirements = _texts(project.get("dependencies"))
    for extra, texts in _table(project.get("optional-dependencies")).items():
        requirements += [with_extra(text, extra) for text in _texts(texts)]
    for group, texts in _table(tables.get("dependency-groups")).items():
        requirements += [with_extra(text, group) for text in _texts(texts)]
    dynamic = _table(_table(tool.get("setuptools")).get("dynamic"))
    requirements += _from_files(read, dynamic.get("dependencies"))
    for extra, files in _table(dynamic.get("optional-dependencies")).items():
        requirements += [with_extra(text, extra) for text in _from_files(read, files)]
    return Metadata(
        name=_text(project.get("name")) or _text(poetry.get("name")),
        version=_text(project.get("version")) or _text(poetry.get("version")),
        requirements=tuple(requirements),
    )


def _from_files(read: Read, entry: object) -> list[str]:
    """The requirements of the files that setuptools is told to read them from."""
    files = _table(entry).get("file")
    names = [files] if isinstance(files, str) else _texts(files)
    return [line for name in names for line in _requirement_lines(read(name))]


def _from_core_metadata(read: Read) -> Metadata:
    data = read("PKG-INFO")
    return parse_core_metadata(data) if data is not None else Metadata()


def _from_setup_cfg(read: Read) -> Metadata:
    data = read("setup.cfg")
    if data is None:
        return Metadata()
    import configparser

    parser = configparser.RawConfigParser()
    try:
        parser.read_string(data.decode("utf-8"))
    except (ValueError, configparser.Error):
        return Metadata()
    requirements = _lines(parser.get("options", "install_requires", fallback=""))
    if parser.has_section("options.extras_require"):
        for extra, texts in parser.items("options.extras_require"):
            requirements += [with_extra(text, extra) for text in _lines(texts)]
    version = parser.get("metadata", "version", fallback="").strip()
    return Metadata(
        name=parser.get("metadata", "name", fallback="").strip() or None,
        version=version if version and not version.startswith(("attr:", "file:")) else None,
        requirements=tuple(text for text in requirements if not text.startswith("file:")),
    )


def _from_setup_py(read: Read) -> Metadata:
    """What setup.py writes down literally; it is never run."""
    data = read("setup.py")
    if data is None:
        return Metadata()
    try:
        module = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Metadata()
    constants = {
        target.id: node.value
        for node in module.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and _called_name(node.func) == "setup":
            given = {keyword.arg: _literal(keyword.value, constants) for keyword in node.keywords if keyword.arg}
            requirements = _texts(given.get("install_requires"))
            for extra, texts in _table(given.get("extras_require")).items():
                requirements += [with_extra(text, str(extra)) for text in _texts(texts)]
            return Metadata(_text(given.get("name")), _text(given.get("version")), tuple(requirements))
    return Metadata()


def _called_name(function: ast.expr) -> str:
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _literal(node: ast.expr, constants: dict[str, ast.expr]) -> object:
    """The value of a literal, or of a module's name for one; what is computed is left out.

    No deeper than the lists in a dict, which is all that a call of `setup` has: names may stand for each other in
    circles.
    """
    node = _named(node, constants)
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {key.value: _flat(_named(value, constants)) for key, value in pairs if isinstance(key, ast.Constant)}
    return _flat(node)


def _flat(node: ast.expr) -> object:
    if isinstance(node, ast.List | ast.Tuple):
        return [element.value for element in node.elts if isinstance(element, ast.Constant)]
    return node.value if isinstance(node, ast.Constant) else None


def _named(node: ast.expr, constants: dict[str, ast.expr]) -> ast.expr:
    return constants.get(node.id, node) if isinstance(node, ast.Name) else node


def _requirement_lines(data: bytes | None) -> Iterator[str]:
    for line in (data or b"").decode("utf-8", "replace").splitlines():
        text = re.sub(r"(^|\s)#.*", "", line).strip()
        if text and not text.startswith("-"):
            yield text


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
