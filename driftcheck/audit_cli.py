"""The command `audit`: what it takes, which findings count, and the form that the report has."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TextIO, TypeVar

from driftcheck.errors import DriftcheckError

if TYPE_CHECKING:
    from driftcheck.audits import Manner
    from driftcheck.configuration import Configuration
    from driftcheck.model import Kind, Report
    from driftcheck.progress import Progress
    from driftcheck.report.placed import Meaning, Placed
    from driftcheck.selection import Selection

Answer = TypeVar("Answer")

NOTHING, FINDINGS, COULD_NOT_CHECK = 0, 1, 2

AUDIT = "Holds clients against a release of the target and reports every use that no longer fits."
AUDIT_NOTES = """\
CLIENT is a path (the working folder by default), NAME of an installed
distribution, or NAME==VERSION from the package index, which is neither built
nor installed. TARGET is vllm (the installed one, the default), vllm==0.16.0,
vllm==latest, a path such as ./vllm, or git+FOLDER@REF of a local clone.

examples:
  driftcheck audit                               this folder, installed vllm
  driftcheck audit src --against vllm==latest    before an upgrade
  driftcheck audit speculators==0.3.0 --against vllm==0.16.0
  driftcheck audit --write-known known.json      then --known known.json

A comment takes findings out of a statement, with a reason:
  engine.step()  # driftcheck: ignore[unknown-argument] patched at start
[tool.driftcheck] in the pyproject.toml of the client's folder, or else of the
working folder, may say what these options say; driftcheck configuration lists
its keys. The command line wins over it.

exit codes:
  0  nothing found at or above --fail-on
  1  something found
  2  could not check: a line on stderr says why
"""
FORMATS = ("text", "json", "sarif", "github", "gitlab", "junit", "markdown")


def add_audit(parser: argparse.ArgumentParser) -> None:
    """The arguments of `audit`."""
    add_sources(parser)
    add_selection(parser)
    report = parser.add_argument_group("the report")
    report.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    report.add_argument("--output", metavar="FILE", help="write the report there instead of to stdout")
    report.add_argument(
        "--explain-unresolved", action="store_true", help="list the usages that could not be judged, and why"
    )
    report.add_argument("--exit-zero", action="store_true", help="exit with 0 whatever is found")


def add_selection(parser: argparse.ArgumentParser) -> None:
    """The options that say which findings count."""
    which = parser.add_argument_group("which findings count")
    which.add_argument("--select", action="append", metavar="KIND,..", help="report these kinds of finding only")
    which.add_argument("--ignore", action="append", metavar="KIND,..", help="leave these kinds of finding out")
    which.add_argument(
        "--exclude",
        action="append",
        metavar="GLOB",
        help="leave out what is found in these files, tests for example",
    )
    which.add_argument(
        "--new-only", action="store_true", default=None, help="report only what was not found with the baseline"
    )
    which.add_argument("--diff-base", metavar="REF", help="report only files that have changed since a git ref")
    known = which.add_mutually_exclusive_group()
    known.add_argument(
        "--known", metavar="FILE", help="accept the findings in FILE; those that are gone are taken out of it"
    )
    known.add_argument("--write-known", metavar="FILE", help="write what is found to FILE, for --known")
    which.add_argument(
        "--fail-on",
        choices=("error", "silent", "warning", "note"),
        help="exit with 1 for findings of this severity or worse (default: silent)",
    )


def add_sources(parser: argparse.ArgumentParser) -> None:
    """The options that say which client is meant, and what it is held against."""
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help="the code to check")
    add_releases(parser.add_argument_group("what it is held against"))


def add_releases(releases: argparse._ArgumentGroup) -> None:
    """The options that say what clients are held against, and how."""
    releases.add_argument("--against", metavar="TARGET", help="the release that will run the client")
    releases.add_argument(
        "--baseline",
        metavar="TARGET",
        help="the release the client was written for (default: what its metadata say, else the best-fitting one)",
    )
    add_model(releases)
    add_reach(releases)
    add_static(releases)
    releases.add_argument(
        "--no-cache", action="store_true", help="look at everything again, even where nothing has changed"
    )


def add_model(parser: argparse._ActionsContainer) -> None:
    """The option that says which model will be loaded."""
    parser.add_argument(
        "--model",
        metavar="ARCHITECTURE",
        help="the model that will be loaded, LlamaForCausalLM for example: only its classes count",
    )


def add_static(parser: argparse._ActionsContainer) -> None:
    """The option that leaves the interpreter out."""
    parser.add_argument("--static", action="store_true", help="read sources only, ask no interpreter for confirmation")


def add_reach(parser: argparse._ActionsContainer) -> None:
    """The options that say where installed code and releases are looked for, and how long."""
    parser.add_argument(
        "--python",
        metavar="PATH",
        help="the interpreter that has the installed ones (default: the active environment's)",
    )
    parser.add_argument("--offline", action="store_true", help="use what is installed or cached, ask no index")
    parser.add_argument(
        "--timeout",
        type=positive_seconds,
        metavar="SECONDS",
        help="the longest wait for the index and for the interpreter",
    )


def positive_seconds(text: str) -> float:
    """A number of seconds as written on the command line."""
    import math

    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number of seconds")
    return seconds


def run_audit(options: argparse.Namespace, complain: Callable[[str], None]) -> int:
    """Audits the clients one by one, prints the report on all, and gives the exit code.

    `complain` is told of each client that could not be checked.
    """
    from driftcheck.audits import Audits
    from driftcheck.output import check_output, write_report

    if options.output is not None:
        check_output(options.output)
        if options.output == options.write_known:
            raise DriftcheckError(f"--output and --write-known both name {options.output}: name two files")
    clients: list[str] = options.clients or ["."]
    audits = Audits([settings_of(options, client) for client in clients], manner_of(options))
    failures = audits.run(clients)
    if audits.placed:
        text = rendered(audits.placed, options, as_list=len(clients) > 1)
        write_report(text, options.output)
    for failure in failures.values():
        complain(str(failure))
    if failures:
        return COULD_NOT_CHECK
    return FINDINGS if audits.is_failed and not options.exit_zero else NOTHING


def asked_of_clients(
    options: argparse.Namespace,
    ask: Callable[[str, Progress], Answer],
    rendered: Callable[[list[Answer]], str],
    complain: Callable[[str], None],
) -> tuple[list[Answer], bool]:
    """The answers on the clients that could be checked, which are written together, and whether that was all of them.

    `complain` is told of each of the others, once the report is out.
    """
    from driftcheck.display import progress_display
    from driftcheck.output import check_output, write_report

    if options.output is not None:
        check_output(options.output)
    answers: list[Answer] = []
    failures: list[DriftcheckError] = []
    with progress_display() as progress:
        for client in options.clients or ["."]:
            try:
                answers.append(ask(client, progress))
            except DriftcheckError as error:
                failures.append(error)
    if answers:
        write_report(rendered(answers), options.output)
    for failure in failures:
        complain(str(failure))
    return answers, not failures


def selection_of(settings: Configuration) -> Selection:
    """Which findings are asked for, as far as kinds and files say, with what the settings have to say themselves."""
    from driftcheck.selection import Selection

    return Selection(
        select=settings.select, ignore=settings.ignore, exclude=settings.exclude or (), notices=settings.notices
    )


def counting(selection: Selection) -> Callable[[Report], Report]:
    """What leaves of a report the findings that are asked for, less those that comments in the client suppress."""
    from driftcheck.selection import selected, suppressed

    return lambda report: selected(suppressed(report), selection)


def settings_of(options: argparse.Namespace, client: str) -> Configuration:
    """What holds for a client: the command line, and where that is silent the client's pyproject.toml."""
    from dataclasses import replace

    from driftcheck.configuration import checked_patterns, load_configuration
    from driftcheck.model import Severity

    file = load_configuration(client)
    select, ignore = _kinds(options.select, "--select"), _kinds(options.ignore, "--ignore")
    exclude = checked_patterns(getattr(options, "exclude", None) or (), "--exclude")
    new_only: bool | None = getattr(options, "new_only", None)
    return replace(
        file,
        against=options.against or file.against,
        baseline=options.baseline or file.baseline,
        python=options.python or file.python,
        model=options.model or file.model,
        select=select or file.select,
        ignore=ignore or (None if select else file.ignore),
        fail_on=Severity(options.fail_on) if options.fail_on else file.fail_on,
        exclude=exclude or file.exclude,
        known=getattr(options, "known", None) or file.known,
        new_only=file.new_only if new_only is None else new_only,
    )


def _kinds(values: Sequence[str] | None, option: str) -> frozenset[Kind]:
    from driftcheck.configuration import listed_names, parse_kinds

    names = listed_names(values)
    if values and not names:
        raise DriftcheckError(f"{option} names nothing; name kinds of finding, with commas between them")
    try:
        return parse_kinds(names)
    except DriftcheckError as error:
        raise DriftcheckError(f"{option}: {error}") from error


def manner_of(options: argparse.Namespace) -> Manner:
    """How the clients are to be found and read, and what of them counts, as the command line says."""
    from driftcheck.audits import Manner

    return Manner(
        static=options.static,
        offline=options.offline,
        timeout=options.timeout,
        remember=not options.no_cache,
        diff_base=getattr(options, "diff_base", None),
        write_known=getattr(options, "write_known", None),
        with_replacements=options.format == "sarif",
    )


def rendered(placed: Sequence[Placed], options: argparse.Namespace, *, as_list: bool) -> str:
    """The reports in the form that is asked for."""
    reports = [each.report for each in placed]
    if options.format == "text":
        stream = sys.stdout if options.output is None else None
        return text_of(reports, stream, explain_unresolved=options.explain_unresolved)
    if options.format == "json":
        from driftcheck.report.json_report import render_json, render_json_list

        explain: bool = options.explain_unresolved
        if as_list:
            return render_json_list(reports, explain_unresolved=explain)
        return render_json(reports[0], explain_unresolved=explain)
    return _for_services(placed, options.format)


def text_of(reports: Sequence[Report], stream: TextIO | None, *, explain_unresolved: bool = False) -> str:
    """The reports for people, as wide and as colourful as the stream they go to; None is a file."""
    from driftcheck.output import columns, is_coloured
    from driftcheck.report.text import render_text

    width, colour = columns(stream), stream is not None and is_coloured(stream)
    return "\n".join(
        render_text(report, width=width, colour=colour, explain_unresolved=explain_unresolved) for report in reports
    )


def _for_services(placed: Sequence[Placed], form: str) -> str:
    if form == "sarif":
        from driftcheck import __version__
        from driftcheck.report.sarif import render_sarif

        return render_sarif(placed, meanings(), __version__)
    if form == "github":
        from driftcheck.report.github import render_github

        return render_github(placed)
    if form == "gitlab":
        from driftcheck.report.gitlab import render_gitlab

        return render_gitlab(placed)
    if form == "junit":
        from driftcheck.report.junit import render_junit

        return render_junit(placed)
    from driftcheck.report.markdown import render_markdown

    return render_markdown(placed)


def meanings() -> dict[str, Meaning]:
    """What the kinds of finding mean, for the reports that explain them."""
    from driftcheck.explanation import as_page, kind_explanations
    from driftcheck.report.placed import Meaning

    meanings = {}
    for name, entry in kind_explanations().items():
        why = next((" ".join(section.text) for section in entry.sections if section.form == "paragraphs"), entry.title)
        meanings[name] = Meaning(entry.title, why, as_page(entry))
    return meanings
