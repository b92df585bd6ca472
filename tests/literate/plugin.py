"""The pytest plugin that collects Markdown files of cases and runs them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from driftcheck.model import Report
from driftcheck.tree import SourceTree
from tests.literate.check import Audit, Problem, Render, check
from tests.literate.document import Case, CaseSyntaxError, read_cases

if TYPE_CHECKING:
    from _pytest._code.code import TerminalRepr

AUDIT: pytest.StashKey[Audit] = pytest.StashKey()
RENDER: pytest.StashKey[Render] = pytest.StashKey()
"""What audits the cases, and words the reports, instead of driftcheck: only the tests of the format itself set them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("literate cases").addoption(
        "--update-reports",
        action="store_true",
        help="rewrite the `text report` blocks of Markdown cases to what the audit says now",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix != ".md" or file_path.name == "README.md":
        return None
    try:
        folders = file_path.relative_to(parent.config.rootpath).parts[:-1]
    except ValueError:
        return None
    if folders[:2] == ("tests", "cases") or folders[:1] == ("rules",):
        return CaseFile.from_parent(parent, path=file_path)
    return None


class CaseFailure(Exception):
    """A case that is not as it says."""

    def __init__(self, problems: tuple[Problem, ...]):
        super().__init__(f"{len(problems)} problems")
        self.problems = problems


class CaseFile(pytest.File):
    """A Markdown file of cases."""

    def collect(self) -> Iterator[pytest.Item]:
        """One item for each case."""
        try:
            cases = read_cases(self.path.read_text(encoding="utf-8"))
        except CaseSyntaxError as error:
            raise self.CollectError(f"{_shown(self.path, self.config)}:{error.line}: {error.message}") from error
        if not cases:
            raise self.CollectError(f"{_shown(self.path, self.config)}: no section holds a client file")
        for case in cases:
            yield CaseItem.from_parent(self, name=case.name, case=case)


class CaseItem(pytest.Item):
    """One case."""

    def __init__(self, *, case: Case, **arguments: object):
        super().__init__(**arguments)  # type: ignore[arg-type]
        self.case = case

    def runtest(self) -> None:
        """Checks the case, and rewrites its report where that was asked for."""
        problems, text = check(
            self.case, self.config.stash.get(AUDIT, _audit_of(self.case)), self.config.stash.get(RENDER, _render)
        )
        if text is not None and self.config.getoption("--update-reports") and self._update_report(text):
            problems = tuple(each for each in problems if not each.is_about_wording)
        if problems:
            raise CaseFailure(problems)

    def _update_report(self, text: str) -> bool:
        """Puts the text into the Markdown file, whose lines other cases may have moved meanwhile."""
        if hasattr(self.config, "workerinput"):
            raise pytest.UsageError("--update-reports rewrites files: run it in one process (-n 0)")
        source = self.path.read_text(encoding="utf-8")
        block = next(case.report for case in read_cases(source) if case.name == self.case.name)
        if block is None:
            return False
        lines = source.split("\n")
        start = block.line - 1
        lines[start : start + block.line_count] = text.rstrip("\n").split("\n")
        self.path.write_text("\n".join(lines), encoding="utf-8")
        return True

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: str | None = None
    ) -> str | TerminalRepr:
        """Each problem under the place in the Markdown file that it is about."""
        if not isinstance(excinfo.value, CaseFailure):
            return super().repr_failure(excinfo)
        lines: list[str] = []
        for problem in sorted(excinfo.value.problems, key=lambda problem: problem.line):
            lines.append(f"{_shown(self.path, self.config)}:{problem.line}: {problem.summary}")
            lines += [f"    {part}" for detail in problem.details for part in detail.split("\n")]
        return "\n".join(lines)

    def reportinfo(self) -> tuple[Path, int, str]:
        """The heading, as the place and the name of the test."""
        return self.path, self.case.line - 1, self.case.title


def _shown(path: Path, config: pytest.Config) -> str:
    return path.relative_to(config.rootpath).as_posix()


def _audit_of(case: Case) -> Audit:
    def audit(client: SourceTree, target: SourceTree, baseline: SourceTree | None) -> Report:
        from driftcheck.audit import audit_trees

        return audit_trees(client, target, baseline, model=case.settings.model or None)

    return audit


def _render(report: Report) -> str:
    from driftcheck.report.text import render_text

    return render_text(report)
