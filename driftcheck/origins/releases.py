"""What an index offers: the files of a project, its versions, and which file stands for a release."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from driftcheck.errors import DriftcheckError
from driftcheck.origins.index_settings import IndexSettings
from driftcheck.origins.names import nearest, normalized, parsed_version, sorted_versions
from driftcheck.origins.transport import Transport, Unreachable, local_path, shown

if TYPE_CHECKING:
    from packaging.version import Version

_SDIST_SUFFIXES = (".tar.gz", ".zip", ".tar.bz2", ".tgz")

_FILE = re.compile(r"[A-Za-z0-9._+!-]+")


class UnknownProject(DriftcheckError):
    """A project that no index knows."""


@dataclass(frozen=True, slots=True)
class ReleaseFile:
    """One file of a release on an index."""

    name: str
    url: str
    version: str
    is_wheel: bool
    sha256: str | None = None
    size: int | None = None
    uploaded: date | None = None
    yanked: bool = False


def index_urls(settings: IndexSettings) -> tuple[str, ...]:
    """The indexes to ask, in order; raises DriftcheckError where the user's settings leave none."""
    if settings.default:
        from pypi_simple import PYPI_SIMPLE_ENDPOINT

        return (PYPI_SIMPLE_ENDPOINT, *settings.urls)
    if not settings.urls:
        raise DriftcheckError("the pip settings switch the package index off (no-index); use --offline or a path")
    return settings.urls


def project_files(transport: Transport, index: str, project: str) -> list[ReleaseFile]:
    """The wheels and source distributions that one index has of a project, none where it doesn't know it."""
    from pypi_simple import ACCEPT_JSON_PREFERRED, ProjectPage, UnsupportedRepoVersionError

    url = f"{index.rstrip('/')}/{normalized(project)}/"
    answer = transport.page(url, ACCEPT_JSON_PREFERRED)
    if answer is None:
        return []
    data, content_type, base = answer
    try:
        if "json" in content_type:
            import json

            page = ProjectPage.from_json_data(json.loads(data), base)
        else:
            page = ProjectPage.from_html(normalized(project), data, base_url=base)
    except (ValueError, TypeError, UnsupportedRepoVersionError) as error:
        raise Unreachable(
            f"{shown(url)} is no index page that driftcheck can read; check the index settings"
        ) from error
    files = []
    for package in page.packages:
        is_wheel = package.package_type == "wheel"
        is_source = package.package_type == "sdist" and package.filename.endswith(_SDIST_SUFFIXES)
        # A page from elsewhere has no business naming files of this machine.
        is_foreign = local_path(package.url) is not None and local_path(index) is None
        if (
            package.version is None
            or is_foreign
            or not (is_wheel or is_source)
            or not _FILE.fullmatch(package.filename)
        ):
            continue
        files.append(
            ReleaseFile(
                name=package.filename,
                url=package.url,
                version=package.version,
                is_wheel=is_wheel,
                sha256=package.digests.get("sha256"),
                size=package.size,
                uploaded=package.upload_time.date() if package.upload_time else None,
                yanked=bool(package.is_yanked),
            )
        )
    return files


def all_files(transport: Transport, settings: IndexSettings, project: str) -> list[ReleaseFile]:
    """The files of every index in order; raises DriftcheckError where none answers or none knows the project."""
    files: list[ReleaseFile] = []
    trouble: Unreachable | None = None
    urls = index_urls(settings)
    for index in urls:
        try:
            files += project_files(transport, index, project)
        except Unreachable as error:
            trouble = trouble or error
    if files:
        return files
    if trouble is not None:
        raise trouble
    raise UnknownProject(f"no package {project} on the index ({', '.join(map(shown, urls))}); check the spelling")


def files_of_release(transport: Transport, settings: IndexSettings, project: str, version: str) -> list[ReleaseFile]:
    """The files of one release, from the first index that has it; raises DriftcheckError naming near versions."""
    wanted = parsed_version(version)
    if wanted is None:
        raise DriftcheckError(f"{version!r} in {project}=={version} is not a version; write one like 0.16.0 or latest")
    seen: list[ReleaseFile] = []
    trouble: Unreachable | None = None
    urls = index_urls(settings)
    for index in urls:
        try:
            files = project_files(transport, index, project)
        except Unreachable as error:
            trouble = trouble or error
            continue
        found = _matching(files, wanted)
        if found:
            return found
        seen += files
    if trouble is not None:
        raise trouble
    if not seen:
        raise UnknownProject(f"no package {project} on the index ({', '.join(map(shown, urls))}); check the spelling")
    near = ", ".join(nearest(offered_versions(seen), wanted))
    raise DriftcheckError(
        f"no release {version} of {project} on the index; nearest are {near}"
        if near
        else f"no release {version} of {project} on the index, and no other one that is not yanked"
    )


def _matching(files: Sequence[ReleaseFile], wanted: Version) -> list[ReleaseFile]:
    exact = [file for file in files if parsed_version(file.version) == wanted]
    if exact or wanted.local is not None:
        return exact
    # `==0.16.0` also stands for 0.16.0+cpu, as the version specifiers have it.
    local = [file for file in files if (found := parsed_version(file.version)) and found.public == wanted.public]
    first = min((file.version for file in local), default=None)
    return [file for file in local if file.version == first]


def offered_versions(files: Sequence[ReleaseFile]) -> list[str]:
    """The versions that have a file which is not yanked, oldest first."""
    return [str(version) for version in sorted_versions(file.version for file in files if not file.yanked)]


def best_file(files: Sequence[ReleaseFile]) -> ReleaseFile:
    """The file that stands for the release, always the same one: the most general wheel, else the source."""
    return min(files, key=_preference)


def _preference(file: ReleaseFile) -> tuple[object, ...]:
    if not file.is_wheel:
        return (1, _SDIST_SUFFIXES.index(next(end for end in _SDIST_SUFFIXES if file.name.endswith(end))), file.name)
    python, abi, platform = file.name.removesuffix(".whl").split("-")[-3:]
    platforms = ("^any$", "manylinux.*x86_64", "linux.*x86_64", "manylinux.*aarch64", "linux", "macosx", "win", "")
    place = next(index for index, pattern in enumerate(platforms) if re.search(pattern, platform))
    minor = max((int(digits) for digits in re.findall(r"(?:cp|py)3(\d+)", python)), default=0)
    build = re.match(r"\d+", parts[2]) if len(parts := file.name.split("-")) == 6 else None
    return (0, place, "py3" not in python, abi != "abi3", -minor, -int(build[0]) if build else 0, file.name)
