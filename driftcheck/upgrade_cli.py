"""The command `upgrade`: what the way from one release to another means for clients."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from driftcheck.audit_cli import (
    COULD_NOT_CHECK,
    FINDINGS,
    NOTHING,
    add_model,
    add_reach,
    asked_of_clients,
    counting,
    selection_of,
    settings_of,
)

if TYPE_CHECKING:
    from driftcheck.configuration import Configuration
    from driftcheck.model import TargetSummary
    from driftcheck.progress import Progress
    from driftcheck.symbol_upgrade import Upgrade

UPGRADE = "Says what an upgrade of the target means for clients: what breaks, and what only behaves otherwise."
UPGRADE_NOTES = """\
Only what the clients couple to is looked at: what they call, import, read,
override, patch or derive from. Breaking is what an audit finds with the older
release as its baseline. Behavioural is what still fits and is not what it was:
announced ends, defaults that a client does not override, parameters and bases
of what it overrides, and functions that do something else under the signature
they had, with how much of their statements and the first line that changed.
--format markdown is made to be pasted into a pull request.

examples:
  driftcheck upgrade                                   this folder, to the latest
  driftcheck upgrade --from 0.18.0 --to 0.22.0 --format markdown
  driftcheck upgrade vllm-spyre==1.9.0 --to vllm==0.18.0 --all

exit codes:
  0  nothing breaks at or above --fail-on
  1  something breaks
  2  could not check: a line on stderr says why
"""
_FORMATS = ("text", "json", "markdown")
_LATEST = "vllm==latest"


def add_upgrade(parser: argparse.ArgumentParser) -> None:
    """The arguments of `upgrade`."""
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help="the code to check, as for audit")
    releases = parser.add_argument_group("which releases")
    releases.add_argument(
        "--from",
        dest="baseline",
        metavar="TARGET",
        help="the release the client was written for (default: what its metadata say, else the best-fitting one)",
    )
    releases.add_argument(
        "--to", dest="against", metavar="TARGET", default=_LATEST, help="the release to go to (default: the latest)"
    )
    add_model(releases)
    add_reach(releases)
    which = parser.add_argument_group("what counts")
    which.add_argument("--select", action="append", metavar="KIND,..", help="these kinds of finding break only")
    which.add_argument("--ignore", action="append", metavar="KIND,..", help="these kinds of finding break nothing")
    which.add_argument(
        "--exclude", action="append", metavar="GLOB", help="leave these files of the client out, tests for example"
    )
    which.add_argument(
        "--fail-on",
        choices=("error", "silent", "warning"),
        help="exit with 1 for what breaks with this severity or worse (default: silent)",
    )
    report = parser.add_argument_group("the report")
    report.add_argument("--all", action="store_true", help="list what is unchanged, and what could not be compared")
    report.add_argument("--format", choices=_FORMATS, default="text", help="default: text")
    report.add_argument("--output", metavar="FILE", help="write the report there instead of to stdout")
    report.add_argument("--exit-zero", action="store_true", help="exit with 0 whatever is found")


def run_upgrade(options: argparse.Namespace, complain: Callable[[str], None]) -> int:
    """Prints what the upgrade means for each client and gives the exit code; `complain` is told of failures."""
    options.against, options.baseline = _release(options.against), _release(options.baseline)

    def asked(client: str, progress: Progress) -> tuple[Upgrade, str, bool]:
        """What it means for one client, the command that makes its fixes, and whether it breaks what counts."""
        settings = settings_of(options, client)
        upgrade = _upgrade(client, settings, options, progress)
        return upgrade, _command(client, settings, upgrade, options), _is_failed(upgrade, settings)

    answers, is_complete = asked_of_clients(
        options,
        asked,
        lambda found: _rendered([(upgrade, command) for upgrade, command, _ in found], options),
        complain,
    )
    if not is_complete:
        return COULD_NOT_CHECK
    return FINDINGS if any(is_failed for _, _, is_failed in answers) and not options.exit_zero else NOTHING


def _release(text: str | None) -> str | None:
    """What names a release, where a version alone is given: 0.18.0 is vllm==0.18.0."""
    from driftcheck.audit import DEFAULT_TARGET
    from driftcheck.origins.names import parsed_version

    return f"{DEFAULT_TARGET}=={text}" if text is not None and parsed_version(text) is not None else text


def _upgrade(client: str, settings: Configuration, options: argparse.Namespace, progress: Progress) -> Upgrade:
    from driftcheck.audit import sources_of
    from driftcheck.selection import is_excluded
    from driftcheck.upgrade import upgrade_of

    sources = sources_of(
        client,
        against=settings.against,
        baseline=settings.baseline,
        python=settings.python,
        static=True,
        offline=options.offline,
        timeout=options.timeout,
        model=settings.model,
        progress=progress,
    )
    selection = selection_of(settings)
    with progress.task(f"Comparing two releases for {sources.client.name}"):
        return upgrade_of(
            sources, selected=counting(selection), is_excluded=lambda path: is_excluded(path, settings.exclude or ())
        )


def _is_failed(upgrade: Upgrade, settings: Configuration) -> bool:
    from driftcheck.model import Severity

    least = settings.fail_on or Severity.SILENT
    return any(finding.severity.rank >= least.rank for symbol in upgrade.broken for finding in symbol.findings)


def _command(client: str, settings: Configuration, upgrade: Upgrade, options: argparse.Namespace) -> str:
    """The command that makes the fixes which are known: what the configuration says it finds there by itself."""
    before = settings.baseline or _named(upgrade.before)
    after = settings.against if settings.against not in (None, _LATEST) else _named(upgrade.after)
    words = ["driftcheck", "fix", client, "--baseline", before, "--against", after or ""]
    for option, values in (("--model", [options.model]), ("--select", options.select), ("--ignore", options.ignore)):
        words += [word for value in values or () if value is not None for word in (option, value)]
    return shlex.join(word for word in words if word != ".")


def _named(release: TargetSummary) -> str:
    return f"{release.name}=={release.version}" if release.version is not None else release.name


def _rendered(found: list[tuple[Upgrade, str]], options: argparse.Namespace) -> str:
    if options.format == "json":
        from driftcheck.report.upgrade_json import render_upgrades_json

        return render_upgrades_json(found, shows_all=options.all)
    if options.format == "markdown":
        from driftcheck.report.upgrade_markdown import render_upgrades_markdown

        return render_upgrades_markdown(found, shows_all=options.all)
    from driftcheck.output import columns
    from driftcheck.report.upgrade_text import render_upgrades

    width = columns(sys.stdout if options.output is None else None)
    return render_upgrades(found, width=width, shows_all=options.all)
