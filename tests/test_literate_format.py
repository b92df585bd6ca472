"""The literate format itself: its grammar, its checks, and the plugin, with a small audit in driftcheck's place."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from driftcheck.model import (
    Certainty,
    ClientSummary,
    Finding,
    Kind,
    Location,
    Report,
    Severity,
    Skipped,
    TargetSummary,
    Unresolved,
    UsageCounts,
)
from driftcheck.tree import MemoryTree, SourceTree
from tests.literate.assertions import read_client_file
from tests.literate.check import Audit, Problem, check
from tests.literate.document import Block, Case, CaseSyntaxError, read_cases

STUBS = """\
# Suite

`baseline/vllm/core.py`:
```py
old = new = 1
```
`target/vllm/core.py`:
```py
new = 1
```
"""


def audit_by_words(client: SourceTree, target: SourceTree, baseline: SourceTree | None) -> Report:
    """A toy audit: `use NAME` is a finding where no file of the target has the word, `guess NAME` is unresolved."""

    def offers(tree: SourceTree, word: str) -> bool:
        return any(re.search(rf"\b{word}\b", tree.read(path).decode()) for path in tree.paths)

    findings: list[Finding] = []
    unresolved: list[Unresolved] = []
    for path in sorted(client.paths):
        for number, line in enumerate(client.read(path).decode().split("\n"), start=1):
            for match in re.finditer(r"\buse\((\w+)\)", line):
                word = match.group(1)
                if not offers(target, word):
                    findings.append(
                        Finding(
                            kind=Kind.UNRESOLVED_SYMBOL,
                            severity=Severity.ERROR,
                            certainty=Certainty.CERTAIN,
                            location=Location(path, number, match.start() + 1, number, match.end() + 1),
                            symbol=f"vllm.{word}",
                            message=f"vllm has no {word}",
                            drift=None if baseline is None else offers(baseline, word),
                        )
                    )
            guesses = re.findall(r"\bguess\((\w+)\)", line)
            unresolved += [Unresolved(path, number, f"{word} has no type") for word in guesses]
    files = len(client.paths)
    return Report(
        client=ClientSummary(client.name, client.version, client.origin, files, files),
        target=TargetSummary(target.name, target.version, target.origin),
        baseline=None if baseline is None else TargetSummary(baseline.name, baseline.version, baseline.origin),
        usages=UsageCounts(),
        findings=tuple(findings),
        unresolved=tuple(unresolved),
    )


def render_messages(report: Report) -> str:
    """A toy report: a line for each finding."""
    return "".join(f"{finding.location.line}: {finding.message}\n" for finding in report.findings)


def case_of(body: str, stubs: str = STUBS) -> Case:
    """The only case of a suite with these stubs."""
    (case,) = read_cases(f"{stubs}\n## The case\n{body}")
    return case


def app(code: str) -> str:
    """A section's body that consists of one client file."""
    return f"`app.py`:\n```py\n{code}\n```\n"


def problems_of(body: str, *, audit: Audit = audit_by_words, stubs: str = STUBS) -> tuple[Problem, ...]:
    """What is wrong with the case."""
    return check(case_of(body, stubs), audit, render_messages)[0]


def changed(change: Callable[[Report], Report]) -> Audit:
    """The toy audit with something changed in its report."""
    return lambda client, target, baseline: change(audit_by_words(client, target, baseline))


class TestGrammar:
    def test_a_section_inherits_the_files_and_settings_above_it(self) -> None:
        cases = read_cases(
            STUBS
            + '```toml\ntarget-version = "0.17.0"\nclient-name = "one"\n```\n'
            + "## Group\n`both/vllm/more.py`:\n```py\nmore = 1\n```\n"
            + f"### First\n{app('a = 1')}"
            + f'### Second\n```toml\nclient-name = "two"\n```\n{app("b = 1")}'
            + f"## Third\n{app('c = 1')}"
        )
        assert [case.name for case in cases] == ["group/first", "group/second", "third"]
        first, second, third = cases
        assert set(first.files) == {"baseline/vllm/core.py", "target/vllm/core.py", "both/vllm/more.py", "app.py"}
        assert set(third.files) == {"baseline/vllm/core.py", "target/vllm/core.py", "app.py"}
        assert second.files["app.py"].text == "b = 1\n"
        assert [case.settings.client_name for case in cases] == ["one", "two", "one"]
        assert third.settings.target_version == "0.17.0"

    def test_a_section_may_hold_client_files_and_sub_sections(self) -> None:
        cases = read_cases(
            f"{STUBS}## Above\n{app('a = 1')}### Below\n`more.py`:\n```py\nb = 1\n```\n### Prose\nWords.\n"
        )
        assert [case.name for case in cases] == ["above", "above/below"]
        assert set(cases[1].client_blocks()) == {"app.py", "more.py"}

    def test_a_block_of_both_releases_replaces_what_was_inherited_for_one(self) -> None:
        case = case_of("`both/vllm/core.py`:\n```py\nother = 1\n```\n" + app("a = 1"))
        baseline = case.baseline_tree()
        assert baseline is not None
        assert case.target_tree().read("vllm/core.py") == baseline.read("vllm/core.py") == b"other = 1\n"

    def test_a_block_of_one_release_goes_before_one_of_both(self) -> None:
        case = case_of(
            "`target/vllm/core.py`:\n```py\nt = 1\n```\n`both/vllm/core.py`:\n```py\nb = 1\n```\n" + app("a = 1")
        )
        baseline = case.baseline_tree()
        assert baseline is not None
        assert case.target_tree().read("vllm/core.py") == b"t = 1\n"
        assert baseline.read("vllm/core.py") == b"b = 1\n"

    def test_stub_folders_are_packages(self) -> None:
        case = case_of("`target/vllm/a/b/c.py`:\n```py\n```\n`target/vllm/d/e.so`:\n```\n```\n" + app("a = 1"))
        assert set(case.target_tree().paths) == {
            "vllm/core.py",
            "vllm/__init__.py",
            "vllm/a/b/c.py",
            "vllm/a/b/__init__.py",
            "vllm/a/__init__.py",
            "vllm/d/e.so",
        }

    def test_without_baseline_stubs_there_is_no_baseline(self) -> None:
        stubs = "# Suite\n`target/vllm/core.py`:\n```py\nnew = 1\n```\n"
        assert case_of(app("a = 1"), stubs).baseline_tree() is None
        assert case_of("```toml\nbaseline = false\n```\n" + app("a = 1")).baseline_tree() is None

    def test_settings_reach_the_trees(self) -> None:
        case = case_of(
            '```toml\ntarget-name = "sgl"\ntarget-version = "2.0"\nbaseline-version = "1.0"\n```\n' + app("a = 1")
        )
        target, baseline = case.target_tree(), case.baseline_tree()
        assert baseline is not None
        assert (target.name, target.version, baseline.name, baseline.version) == ("sgl", "2.0", "sgl", "1.0")

    def test_a_longer_fence_holds_a_shorter_one(self) -> None:
        case = case_of('`app.py`:\n````py\ntext = """\n```\n# Not a heading\n```\n"""\n````\n')
        assert case.files["app.py"].text == 'text = """\n```\n# Not a heading\n```\n"""\n'

    def test_unnamed_blocks_without_assertions_are_prose(self) -> None:
        assert set(case_of("```py\nfor show\n```\n" + app("a = 1")).client_blocks()) == {"app.py"}

    def test_a_named_toml_block_is_a_file(self) -> None:
        case = case_of('`pyproject.toml`:\n```toml\n[project]\nname = "x"\n```\n' + app("a = 1"))
        assert case.files["pyproject.toml"].text == '[project]\nname = "x"\n'
        assert problems_of("`pyproject.toml`:\n```toml\n# finding: none of this is read\n```\n" + app("a = 1")) == ()

    @pytest.mark.parametrize(
        ("body", "line", "message"),
        [
            ("`app.py`:\n\nProse instead.\n", 13, "no block follows"),
            ("`app.py`:\n", 13, "no block follows"),
            ("`app.py`:\n```py\na = 1\n", 14, "never closed"),
            (app("a = 1") + app("b = 1"), 18, "given twice"),
            ("`../app.py`:\n```py\n```\n", 14, "not a plain path"),
            ("`/app.py`:\n```py\n```\n", 14, "not a plain path"),
            ("`a//b.py`:\n```py\n```\n", 14, "not a plain path"),
            (app("a = 1") + "`other.py`, fixed:\n```py\n```\n", 19, "no file of the client's"),
            (app("a = 1") + "`app.py`, fixed:\n```py\n```\n" * 2, 21, "given twice"),
            ('```py\nuse(old)  # finding: [unresolved-symbol] "old"\n```\n', 13, "no path in backticks"),
            ("```toml\ntarget = 1\n```\n", 14, "no setting is named target"),
            ('```toml\nbaseline = "no"\n```\n', 14, "baseline is a bool"),
            ("```toml\nbaseline =\n```\n", 14, "no TOML"),
            ("`target/vllm/more.py`:\n```py\n```\n", 12, "no client file"),
            (app("a = 1") + "```text report\n```\n```text report\n```\n", 19, "one report at most"),
            (app("a = 1") + "## The Case!\n" + app("a = 1"), 17, "a second section is named the-case"),
        ],
    )
    def test_what_the_grammar_refuses(self, body: str, line: int, message: str) -> None:
        with pytest.raises(CaseSyntaxError) as refusal:
            read_cases(f"{STUBS}\n## The case\n{body}")
        assert message in refusal.value.message
        assert refusal.value.line == line

    def test_a_case_needs_a_stub_of_the_target(self) -> None:
        with pytest.raises(CaseSyntaxError, match="no stub of the target"):
            read_cases(f"# Suite\n{app('a = 1')}")


class TestAssertions:
    def read(self, code: str) -> tuple[str, list[str]]:
        """The text without assertions, and the assertions as `line text`."""
        file = read_client_file("app.py", Block(code, 1))
        return file.text, [
            *(f"{each.line} {each}" for each in file.findings),
            *(f"{each.line} {each}" for each in file.unresolved),
        ]

    def test_they_are_taken_out_and_lines_stay(self) -> None:
        text, expected = self.read('a = 1\nb = 2  # finding: [unknown-argument] "b"\nc = 3\n')
        assert text == "a = 1\nb = 2\nc = 3\n"
        assert expected == ['2 [unknown-argument] "b"']

    def test_several_on_one_line(self) -> None:
        code = 'a()  # finding: [unknown-argument] "x" drift=true # finding: [missing-argument] "y" # unresolved: z\n'
        assert self.read(code) == (
            "a()\n",
            ['1 [unknown-argument] "x" drift=true', '1 [missing-argument] "y"', "1 unresolved: z"],
        )

    def test_alone_on_their_line_they_speak_for_the_next(self) -> None:
        code = '# finding: [unknown-argument] "x"\n# unresolved: y\na()\n'
        assert self.read(code) == ("\n\na()\n", ['3 [unknown-argument] "x"', "3 unresolved: y"])

    def test_other_comments_stay(self) -> None:
        assert self.read("a()  # type: ignore  # unresolved: y\n")[0] == "a()  # type: ignore\n"

    def test_strings_are_no_comments(self) -> None:
        code = 'a = """\n# finding: nothing\n"""\nb = "# unresolved: x"\n'
        assert self.read(code) == (code, [])

    def test_code_that_does_not_parse_can_assert(self) -> None:
        assert self.read("def (:  # unresolved: x\n") == ("def (:\n", ["1 unresolved: x"])

    def test_quotes_within_the_text(self) -> None:
        assert self.read('a()  # finding: [unknown-argument] "a \\"b\\""\n')[1] == ['1 [unknown-argument] "a "b""']

    @pytest.mark.parametrize(
        ("code", "line", "message"),
        [
            ("a()  # finding: unknown-argument\n", 10, "does not read"),
            ('a()\nb()  # finding: [no-such-kind] "x"\n', 11, "no kind of finding"),
            ('a()  # finding: [unknown-argument] ""\n', 10, "does not read"),
            ('a()  # finding: [unknown-argument] "x" colour=red\n', 10, "no qualifier is named colour"),
            ('a()  # finding: [unknown-argument] "x" drift=maybe\n', 10, "drift is one of"),
            ("a()  # unresolved:\n", 10, "says no reason"),
            ("a()\n# unresolved: x\n", 11, "before no line of code"),
        ],
    )
    def test_what_they_may_not_say(self, code: str, line: int, message: str) -> None:
        with pytest.raises(CaseSyntaxError) as refusal:
            read_client_file("app.py", Block(code, 10))
        assert message in refusal.value.message
        assert refusal.value.line == line


class TestChecks:
    def test_a_case_that_is_as_it_says(self) -> None:
        assert problems_of(app('use(new)\nuse(old)  # finding: [unresolved-symbol] "old" drift=true')) == ()

    def test_an_unasserted_finding(self) -> None:
        (problem,) = problems_of(app("a = 1\nuse(old)"))
        assert problem.line == 16
        assert problem.summary == "app.py:2: unasserted finding"
        assert problem.details == (
            "code      use(old)",
            'got       [unresolved-symbol] "vllm has no old" certainty=certain drift=true severity=error',
        )

    def test_a_finding_that_does_not_come(self) -> None:
        (problem,) = problems_of(app('use(new)  # finding: [unresolved-symbol] "new"'))
        assert (problem.line, problem.summary) == (15, "app.py:1: a finding that did not come")
        assert problem.details == (
            "code      use(new)",
            'expected  [unresolved-symbol] "new"',
            "got       nothing else on this line",
        )

    @pytest.mark.parametrize(
        "asserted",
        [
            '[unresolved-module] "old"',
            '[unresolved-symbol] "odd"',
            '[unresolved-symbol] "old" severity=warning',
            '[unresolved-symbol] "old" certainty=likely',
            '[unresolved-symbol] "old" drift=false',
            '[unresolved-symbol] "old" symbol=vllm.odd',
            '[unresolved-symbol] "old" raises=TypeError',
        ],
    )
    def test_another_finding_than_the_expected(self, asserted: str) -> None:
        (problem,) = problems_of(app(f"use(old)  # finding: {asserted}"))
        assert problem.summary == "app.py:1: another finding"
        assert problem.details[1] == f"expected  {asserted}"
        assert problem.details[2].startswith('got       [unresolved-symbol] "vllm has no old"')

    def test_each_assertion_takes_one_finding(self) -> None:
        twice = '# finding: [unresolved-symbol] "old" # finding: [unresolved-symbol] "old"'
        assert problems_of(app(f"use(old); use(old)  {twice}")) == ()
        assert len(problems_of(app(f"use(old)  {twice}"))) == 1
        assert len(problems_of(app('use(old); use(old)  # finding: [unresolved-symbol] "old"'))) == 1

    def test_the_most_assertions_find_their_partner(self) -> None:
        """The first assertion fits both findings, the second only the first of them."""
        stubs = STUBS.replace("old = new", "old = older = new")
        body = app('use(old); use(older)  # finding: [unresolved-symbol] "old" # finding: [unresolved-symbol] "older"')
        assert problems_of(body, stubs=stubs) == ()
        body = app('use(older); use(old)  # finding: [unresolved-symbol] "old" # finding: [unresolved-symbol] "older"')
        assert problems_of(body, stubs=stubs) == ()

    def test_unresolved_usages_count_once_the_section_speaks_of_them(self) -> None:
        assert problems_of(app("guess(a)")) == ()
        assert problems_of(app("guess(a)  # unresolved: no type")) == ()
        (problem,) = problems_of(app("guess(a)  # unresolved: no type\nguess(b)"))
        assert (problem.line, problem.summary) == (16, "app.py:2: unasserted unresolved usage")
        (problem,) = problems_of("```toml\nunresolved = true\n```\n" + app("guess(a)"))
        assert (problem.line, problem.details[1]) == (18, "got       call: a has no type")
        (problem,) = problems_of(app("guess(a)  # unresolved: no base"))[:1]
        assert problem.details == (
            "code      guess(a)",
            "expected  unresolved: no base",
            "got       call: a has no type",
        )

    def test_one_assertion_speaks_for_all_usages_of_a_line_with_the_reason(self) -> None:
        assert problems_of(app("guess(a); guess(b)  # unresolved: no type")) == ()
        (problem,) = problems_of(app("guess(a); guess(b)  # unresolved: a has"))
        assert problem.details[1] == "got       call: b has no type"

    def test_there_is_no_drift_without_a_baseline(self) -> None:
        def claim(report: Report) -> Report:
            return replace(report, findings=tuple(replace(each, drift=True) for each in report.findings))

        body = "```toml\nbaseline = false\n```\n" + app('use(odd)  # finding: [unresolved-symbol] "odd"')
        assert problems_of(body) == ()
        (problem,) = problems_of(body, audit=changed(claim))
        assert problem.summary == "app.py:1: drift is True without a baseline"

    def test_the_client_must_fit_its_baseline(self) -> None:
        body = app('use(odd)  # finding: [unresolved-symbol] "odd" drift=false')
        (problem,) = problems_of(body)
        assert (problem.line, problem.summary) == (15, "app.py:1: the client does not fit its own baseline")
        assert problems_of("```toml\nbroken-at-baseline = true\n```\n" + body) == ()
        (problem,) = problems_of("```toml\nbroken-at-baseline = true\n```\n" + app("use(new)"))
        assert "is clean against the baseline" in problem.summary

    def test_notes_and_warnings_are_no_breaks_at_the_baseline(self) -> None:
        def soften(report: Report) -> Report:
            return replace(report, findings=tuple(replace(each, severity=Severity.WARNING) for each in report.findings))

        body = app('use(odd)  # finding: [unresolved-symbol] "odd" severity=warning')
        assert problems_of(body, audit=changed(soften)) == ()

    def test_the_order_of_files_must_not_matter(self) -> None:
        def audit(client: SourceTree, target: SourceTree, baseline: SourceTree | None) -> Report:
            report = audit_by_words(client, target, baseline)
            return replace(report, notices=tuple(target.paths))

        (problem,) = problems_of(app("use(new)"), audit=audit)
        assert problem.summary == "the same files in another order give another report"
        assert problem.details[0].startswith("notices: ")

    def test_a_client_file_must_not_be_skipped(self) -> None:
        def skip(report: Report) -> Report:
            return replace(report, client=replace(report.client, skipped=(Skipped("app.py", "too odd"),)))

        (problem,) = problems_of(app("use(new)"), audit=changed(skip))
        assert problem.summary == "app.py was skipped"

    def test_code_that_does_not_parse_has_to_be_meant(self) -> None:
        (problem,) = problems_of(app("a = 1\nb = ("))
        assert problem.line == 16
        assert problem.summary.startswith("app.py:2 does not parse (")
        named = '```toml\nunparsable = ["app.py"]\n```\n' + app("b = (")
        (problem,) = problems_of(named)
        assert problem.summary == "app.py was not skipped, although `unparsable` names it"

        def skip(report: Report) -> Report:
            return replace(report, client=replace(report.client, skipped=(Skipped("app.py", "does not parse"),)))

        assert problems_of(named, audit=changed(skip)) == ()
        (problem,) = problems_of('```toml\nunparsable = ["odd.py"]\n```\n' + app("a = 1"))
        assert "which the case does not have" in problem.summary

    @pytest.mark.parametrize(
        ("code", "change", "summary"),
        [
            ("use(old)\nuse(old)", lambda findings: findings[::-1], "not sorted"),
            (
                "use(old)",
                lambda findings: [replace(findings[0], certainty=Certainty.POSSIBLE)],
                "only possible is at most a warning",
            ),
            (
                "use(old)",
                lambda findings: [replace(findings[0], location=Location("odd.py", 1))],
                "a line that the client does not have",
            ),
        ],
    )
    def test_what_holds_of_every_report(
        self, code: str, change: Callable[[Sequence[Finding]], Sequence[Finding]], summary: str
    ) -> None:
        asserted = "\n".join(f'{line}  # finding: [unresolved-symbol] "old"' for line in code.split("\n"))
        audit = changed(
            lambda report: replace(report, findings=tuple(change(report.findings) if report.findings else ()))
        )
        assert any(summary in problem.summary for problem in problems_of(app(asserted), audit=audit))

    def test_an_assertion_that_cannot_be_read_is_a_problem(self) -> None:
        (problem,) = problems_of(app("a = 1\nuse(old)  # finding: old"))
        assert (problem.line, problem.summary[:12]) == (16, '"# finding: ')

    def test_a_report_is_compared_as_text(self) -> None:
        body = app('use(old)  # finding: [unresolved-symbol] "old"')
        assert problems_of(body + "```text report\n1: vllm has no old\n```\n") == ()
        (problem,) = problems_of(body + "```text report\n1: vllm has no odd\n```\n")
        assert (problem.line, problem.is_about_wording) == (18, True)
        assert problem.details[-2:] == ("-1: vllm has no odd", "+1: vllm has no old")

    def test_the_client_is_audited_without_assertions(self) -> None:
        seen: list[bytes] = []

        def audit(client: SourceTree, target: SourceTree, baseline: SourceTree | None) -> Report:
            seen.append(client.read("app.py"))
            return audit_by_words(client, target, baseline)

        assert problems_of(app('use(old)  # finding: [unresolved-symbol] "old"'), audit=audit) == ()
        assert set(seen) == {b"use(old)\n"}


PLUGIN_CONFTEST = """\
from tests.literate import plugin
from tests.test_literate_format import audit_by_words, render_messages

def pytest_configure(config):
    config.stash[plugin.AUDIT] = audit_by_words
    config.stash[plugin.RENDER] = render_messages
"""


class TestPlugin:
    @pytest.fixture
    def suite(self, pytester: pytest.Pytester) -> Path:
        """A suite of one case that holds, one that does not, and one with an outdated report."""
        pytester.makeconftest(PLUGIN_CONFTEST)
        folder = pytester.mkdir("tests") / "cases"
        folder.mkdir()
        suite = folder / "suite.md"
        good = app('use(old)  # finding: [unresolved-symbol] "old"')
        reported = f"{good}```text report\nwords\nof old\n```\n"
        suite.write_text(f"{STUBS}## Good\n{good}## Wrong\n{app('use(old)')}## Reported\n{reported}")
        (folder / "README.md").write_text("# No suite\n")
        return suite

    def run(self, pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
        return pytester.runpytest_inprocess("-p", "tests.literate.plugin", "-p", "no:cacheprovider", *arguments)

    def test_cases_are_items(self, pytester: pytest.Pytester, suite: Path) -> None:
        result = self.run(pytester, "--collect-only", "-q")
        assert result.outlines[:3] == [f"tests/cases/suite.md::{name}" for name in ("good", "wrong", "reported")]

    def test_a_failure_names_the_place_in_the_markdown_file(self, pytester: pytest.Pytester, suite: Path) -> None:
        result = self.run(pytester, "-k", "wrong")
        result.assert_outcomes(failed=1, deselected=2)
        result.stdout.fnmatch_lines(
            [
                "tests/cases/suite.md:19: app.py:1: unasserted finding",
                "    code      use(old)",
                '    got       [[]unresolved-symbol[]] "vllm has no old" *drift=true*',
            ]
        )
        assert "Traceback" not in result.stdout.str()

    def test_reports_are_rewritten_on_request_and_nothing_else(self, pytester: pytest.Pytester, suite: Path) -> None:
        before = suite.read_text()
        self.run(pytester).assert_outcomes(passed=1, failed=2)
        assert suite.read_text() == before
        self.run(pytester, "--update-reports").assert_outcomes(passed=2, failed=1)
        assert suite.read_text() == before.replace("words\nof old\n", "1: vllm has no old\n")
        self.run(pytester).assert_outcomes(passed=2, failed=1)

    def test_a_file_that_breaks_the_grammar_is_an_error(self, pytester: pytest.Pytester, suite: Path) -> None:
        (suite.parent / "bad.md").write_text("# Bad\n`app.py`:\n")
        result = self.run(pytester)
        result.stdout.fnmatch_lines(["tests/cases/bad.md:2: `app.py` names a file, but no block follows"])
        assert result.ret is pytest.ExitCode.INTERRUPTED

    def test_a_file_without_cases_is_an_error(self, pytester: pytest.Pytester, suite: Path) -> None:
        (suite.parent / "empty.md").write_text("# Words\n")
        result = self.run(pytester)
        result.stdout.fnmatch_lines(["tests/cases/empty.md: no section holds a client file"])

    def test_rules_are_suites_and_other_documents_are_not(self, pytester: pytest.Pytester, suite: Path) -> None:
        for folder in ("rules/vllm", "docs"):
            (pytester.path / folder).mkdir(parents=True)
            (pytester.path / folder / "some.md").write_text(f"{STUBS}## Good\n{app('use(new)')}")
        result = self.run(pytester, "--collect-only", "-q")
        assert "rules/vllm/some.md::good" in result.outlines
        assert not any(line.startswith("docs/") for line in result.outlines)


def test_a_tree_is_given_backwards_as_asked() -> None:
    case = case_of("`target/vllm/more.py`:\n```py\n```\n" + app("a = 1"))
    forwards: MemoryTree = case.target_tree()
    assert list(case.target_tree(backwards=True).paths) == list(forwards.paths)[::-1]
