"""`pytest --driftcheck`: an audit of the project as one more test.

pytest loads this in every environment that has driftcheck, so nothing of driftcheck is imported before it is asked for.
"""

from __future__ import annotations

from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option."""
    parser.getgroup("driftcheck").addoption(
        "--driftcheck", action="store_true", help="audit the project as [tool.driftcheck] in its pyproject.toml says"
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Adds the test, whichever of the others were chosen."""
    if config.getoption("--driftcheck"):
        items.append(Audit.from_parent(session, name="driftcheck"))


class _Drifted(Exception):
    """What the audit found, or why it could not be made, in words."""


class Audit(pytest.Item):
    """The audit of the folder that holds pytest's configuration."""

    def runtest(self) -> None:
        """Fails where the command line would."""
        from driftcheck.audit_cli import manner_of, settings_of, text_of
        from driftcheck.audits import Audits
        from driftcheck.cli import command_parser
        from driftcheck.errors import DriftcheckError

        client = str(self.config.rootpath)
        options = command_parser().parse_args(["audit"])
        try:
            audits = Audits([settings_of(options, client)], manner_of(options))
            failures = audits.run([client])
        except DriftcheckError as error:
            raise _Drifted(f"could not check: {error}") from error
        if failures:
            raise _Drifted(f"could not check: {failures[0]}")
        if audits.is_failed:
            raise _Drifted(text_of([placed.report for placed in audits.placed], None))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *arguments: Any, **options: Any) -> Any:
        """The report alone for what was found, a traceback for a fault."""
        if isinstance(excinfo.value, _Drifted):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *arguments, **options)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """The heading above a failure."""
        return self.path, None, "driftcheck"
