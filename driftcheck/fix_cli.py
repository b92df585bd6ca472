"""The commands `fix` and `restore`: what they take, and where they put what comes of it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from driftcheck.errors import DriftcheckError

if TYPE_CHECKING:
    from pathlib import Path

    from driftcheck.audit import Sources
    from driftcheck.configuration import Configuration
    from driftcheck.fixes.changes import Changes
    from driftcheck.fixing import Choice
    from driftcheck.model import Repair
    from driftcheck.progress import Progress
    from driftcheck.report.repair_text import Told
    from driftcheck.tree import SourceTree

FIX = "Repairs what an audit finds, as far as the edits are known, and proves it by another audit."
FIX_NOTES = """\
Without --write or --overlay nothing is changed: the edits go to stdout as a
patch that git apply and patch -p1 take, and what became of each finding to
stderr; --format json goes to stdout and has the patch in it. Safe fixes are
made; --unsafe makes those too that a person should look at.

examples:
  driftcheck fix --against vllm==0.16.0 | git apply
  driftcheck fix --format json | jq -r .patch | git apply
  driftcheck fix --write --unsafe
  driftcheck fix speculators --overlay fixed --unsafe    then PYTHONPATH=fixed
  driftcheck fix --compat '>=0.11,<0.18' --unsafe        one source for all

exit codes:
  0  nothing is left at silent or above
  1  something is left, for a person or for --unsafe
  2  could not check or write: a line on stderr says why
"""
RESTORE = "Takes back what the last fix --write has changed in a working copy or an installed client."


def add_fix(parser: argparse.ArgumentParser) -> None:
    """The arguments of `fix` that `audit` does not have."""
    where = parser.add_argument_group("where the edits go").add_mutually_exclusive_group()
    where.add_argument("--diff", action="store_true", help="to stdout, as a patch (the default)")
    where.add_argument("--write", action="store_true", help="into the client's files; driftcheck restore takes it back")
    where.add_argument("--overlay", metavar="DIR", help="into a copy of the client there, to put first on PYTHONPATH")
    which = parser.add_argument_group("which edits are made")
    which.add_argument("--unsafe", action="store_true", help="make edits too that may need a person's eye")
    which.add_argument(
        "--compat", metavar="RANGE", help="edit so that the client works with all releases in a range, '>=0.11,<0.18'"
    )
    which.add_argument(
        "--select", dest="names", action="append", metavar="NAME,..", help="repair these kinds or rules only"
    )
    which.add_argument(
        "--ignore", dest="left_out", action="append", metavar="NAME,..", help="leave these kinds or rules alone"
    )
    # Rules count here as kinds do, so these are not the kinds that `audit` is given under the same options.
    parser.set_defaults(select=None, ignore=None, fail_on=None)
    report = parser.add_argument_group("the report")
    report.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="default: text, beside a patch to stderr; json goes to stdout and has the patch in it",
    )


def add_restore(parser: argparse.ArgumentParser) -> None:
    """The arguments of `restore`."""
    parser.add_argument("client", nargs="?", default=".", metavar="CLIENT", help="as for fix (default: this folder)")
    parser.add_argument("--all", action="store_true", help="take back all fixes, not only the last one")
    parser.add_argument("--force", action="store_true", help="files edited since too; their text stays beside them")
    parser.add_argument("--python", metavar="PATH", help="the interpreter that has an installed client")


def run_fix(
    client: str,
    settings: Configuration,
    options: argparse.Namespace,
    progress: Progress,
    find: Callable[..., Sources],
) -> Told:
    """Repairs one client.

    `find` gives the client with the target that it is told as `against`.
    """
    from driftcheck.fixing import fixed
    from driftcheck.report.repair_text import Told

    choice = _choice(options, settings)
    sources = [find(against=target) for target in _targets(settings, options)]
    with progress.task(f"Repairing {client}") as task:
        repair, changes = fixed(sources, choice, lambda _: task.advance())
    return Told(repair, *_put(sources[0].client, changes, options))


def tell_fixes(told: Sequence[Told], options: argparse.Namespace, *, as_list: bool) -> int:
    """Prints what has become of the clients, and gives the exit code.

    As text it goes to stderr where a patch is what goes to stdout; JSON has the patch in it.
    """
    from driftcheck.output import columns, write_stdout, write_stdout_bytes
    from driftcheck.report.repair_text import render_repair, render_repair_json

    if options.format == "json":
        write_stdout(render_repair_json(told, as_list=as_list))
    else:
        for each in told:
            text = render_repair(each.repair, width=columns(sys.stderr), written=each.written)
            _print(text, to_stdout=each.patch is None)
        write_stdout_bytes(b"".join(each.patch for each in told if each.patch is not None))
    return 1 if any(each.repair.left or _is_open(each.repair) for each in told) else 0


def _is_open(repair: Repair) -> bool:
    return any(entry.status in ("person", "unsafe") and entry.finding.is_severe for entry in repair.findings)


def _print(text: str, *, to_stdout: bool) -> None:
    if to_stdout:
        from driftcheck.output import write_stdout

        write_stdout(text)
    elif sys.stderr is not None:
        sys.stderr.write(text)


def _choice(options: argparse.Namespace, settings: Configuration) -> Choice:
    """What is to be repaired: as the command line says, and where that is silent the configuration."""
    from driftcheck.fixing import Choice

    select, ignore = _names(options.names, "--select"), _names(options.left_out, "--ignore")
    if not select and settings.select is not None:
        select = frozenset(kind.value for kind in settings.select)
    if not ignore and not options.names and settings.ignore is not None:
        ignore = frozenset(kind.value for kind in settings.ignore)
    return Choice(options.unsafe, select, ignore)


def _names(values: Sequence[str] | None, option: str) -> frozenset[str]:
    """Kinds and rules by name; raises DriftcheckError for one that is neither."""
    from driftcheck.configuration import listed_names, nearest
    from driftcheck.model import Kind
    from driftcheck.rule_files import all_rules

    names = frozenset(listed_names(values))
    if values and not names:
        raise DriftcheckError(f"{option} names nothing; name kinds of finding or rules, with commas between them")
    known = sorted({kind.value for kind in Kind} | {rule.id for rule in all_rules()})
    for name in sorted(names):
        if name not in known:
            raise DriftcheckError(f"{option}: {name!r} is no kind of finding and no rule{nearest(name, known)}")
    return names


def _targets(settings: Configuration, options: argparse.Namespace) -> list[str | None]:
    """The releases that the client is repaired for, None for the installed one."""
    from driftcheck.audit import releases_in

    if options.compat is None:
        return [settings.against]
    if options.against is not None:
        raise DriftcheckError("--compat names the releases; leave --against out")
    return list(releases_in(options.compat, offline=options.offline))


def _put(tree: SourceTree, changes: Changes, options: argparse.Namespace) -> tuple[bytes | None, str]:
    """Puts the edits where they are wanted: the patch, None where there is none, and where the edits are, in words."""
    from driftcheck.fixes.diff import unified
    from driftcheck.report.layout import counted

    if options.overlay is not None:
        from pathlib import Path

        from driftcheck.fixes.overlay import overlay

        overlay(tree, changes, Path(options.overlay))
        return None, f"in {options.overlay}: put it first on PYTHONPATH"
    if options.write:
        from driftcheck.fixes.records import with_record
        from driftcheck.fixes.writing import write

        root, state = _places(tree)
        if not changes:
            return None, ""
        write(with_record(changes, root), root, state)
        return None, f"{counted(len(changes), 'file')} written; driftcheck restore takes it back"
    return unified(changes), ""


def _places(tree: SourceTree) -> tuple[Path, Path]:
    """The folder that holds a client's files, and the one that keeps what they were."""
    from pathlib import Path

    from driftcheck.fixes.state import state_folder, user_state_folder

    base = getattr(tree, "base", None)
    if not isinstance(base, Path):
        raise DriftcheckError(f"{tree.name} is a {tree.origin} and nothing to write to; use --diff or --overlay DIR")
    return base, user_state_folder(base) if tree.origin == "installed distribution" else state_folder(base)


def run_restore(options: argparse.Namespace) -> int:
    """Takes a fix back and says what was put back."""
    from driftcheck.fixes.restoring import restore
    from driftcheck.origins.select import client_tree
    from driftcheck.origins.settings import Settings
    from driftcheck.output import write_stdout
    from driftcheck.report.harmless import harmless
    from driftcheck.report.layout import counted

    root, state = _places(client_tree(options.client, settings=Settings(python=options.python)))
    restored = restore(root, state, everything=options.all, force=options.force)
    lines = [*(f"restored {path}" for path in restored.paths), *(f"kept {path}" for path in restored.edits)]
    if restored.left:
        lines.append(f"{counted(restored.left, 'earlier fix', 'earlier fixes')} left: driftcheck restore goes on")
    write_stdout("".join(f"{harmless(line)}\n" for line in lines))
    return 0
