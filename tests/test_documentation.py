"""What the documents say is so: shown output, help, links, lists of modules, kinds and dependencies."""

from __future__ import annotations

import ast
import html
import os
import re
import shlex
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from driftcheck.model import Kind, Severity
from driftcheck.origins.metadata import parse_toml

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
README = ROOT / "README.md"
SHOWN = re.compile(r"^<!-- output: (?P<command>[^\n]+) -->\n```text\n(?P<output>.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = [match["command"] for match in SHOWN.finditer(README.read_text(encoding="utf-8"))]
HELP = [command for command in COMMANDS if command.endswith("--help")]
AUDITS = [command for command in COMMANDS if not command.endswith("--help")]


def run(command: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a command as one does whose output goes to a file, 80 columns wide where it asks."""
    kept = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "PYTHONPATH")}
    return subprocess.run(
        command, env={**kept, "COLUMNS": "80", **variables}, capture_output=True, text=True, check=False
    )


def check_shown(command: str, output: str, *, update: bool) -> None:
    """Compares the output with the block that the README shows, or puts it there."""
    text = README.read_text(encoding="utf-8")
    match = next(match for match in SHOWN.finditer(text) if match["command"] == command)
    if update:
        README.write_text(text[: match.start("output")] + output + text[match.end("output") :], encoding="utf-8")
        return
    assert match["output"] == output, "the README shows something else; pytest --update-reports rewrites it"


@pytest.mark.parametrize("command", HELP)
def test_readme_shows_the_help(command: str, pytestconfig: pytest.Config) -> None:
    done = run([sys.executable, "-m", *shlex.split(command)], PYTHONPATH=str(ROOT))
    assert (done.returncode, done.stderr) == (0, "")
    check_shown(command, done.stdout, update=pytestconfig.getoption("--update-reports"))


def test_help_of_every_command_is_shown() -> None:
    done = run([sys.executable, "-m", "driftcheck", "--help"], PYTHONPATH=str(ROOT))
    commands = re.findall(r"^    (\w+)(?:  |$)", done.stdout, re.MULTILINE)
    assert commands
    assert [f"driftcheck {command} --help" for command in commands] == HELP


@pytest.mark.index
@pytest.mark.parametrize("command", AUDITS)
def test_readme_shows_the_audit(command: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """The first command of the README, in a new environment and with nothing cached."""
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    programs = environment / "bin"
    installed = run([str(programs / "python"), "-m", "pip", "install", str(ROOT)])
    assert installed.returncode == 0, installed.stderr
    rules = (
        "from driftcheck.knowledge import rules_folder; print(*sorted(path.name for path in rules_folder().iterdir()))"
    )
    shipped = run([str(programs / "python"), "-c", rules]).stdout.split()
    assert shipped == sorted(path.name for path in (ROOT / "rules").iterdir())
    program, *arguments = shlex.split(command)
    folder = str(tmp_path / "cache")
    done = run([str(programs / program), *arguments], DRIFTCHECK_CACHE_DIR=folder)
    assert (done.returncode, done.stderr) == (1, "")
    check_shown(command, done.stdout, update=pytestconfig.getoption("--update-reports"))
    again = run([str(programs / program), *arguments, "--offline"], DRIFTCHECK_CACHE_DIR=folder)
    assert again.stdout == done.stdout


def test_two_commands_stand_first() -> None:
    commands = re.findall(r"^```sh\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert AUDITS[0].startswith("driftcheck audit ")
    assert commands[:2] == [f"pip install . && {AUDITS[0]}\n", "pip install -e '.[dev]' && pytest\n"]


def test_ci_runs_the_readme_s_test_command() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "step 'tests' \"pip install -e '.[dev]' && pytest\"\n" in script.read_text(encoding="utf-8")


def without_code(document: Path) -> str:
    return re.sub(r"^(`{3,}).*?^\1$", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)", without_code(document))
    lost = []
    for target in targets:
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        found = (document.parent / path).resolve() if path else document
        if not found.exists() or (anchor and anchor not in anchors(found)):
            lost.append(target)
    assert not lost


def anchors(document: Path) -> set[str]:
    """The anchors that headings get: lower case, without punctuation, hyphens for spaces."""
    headings = re.findall(r"^#+ (.+)$", without_code(document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def table_rows(document: Path, head: str) -> list[str]:
    """The first cells of the table whose first column is headed so, without their backticks."""
    match = re.search(rf"^\| {head} \|.*\n\|[ -|]+\n((?:\|.*\n)+)", document.read_text(encoding="utf-8"), re.MULTILINE)
    assert match is not None
    return [row.split("|")[1].strip().strip("`") for row in match[1].splitlines()]


def test_readme_lists_the_severities() -> None:
    assert table_rows(README, "severity") == [severity.value for severity in Severity]


def test_readme_lists_the_kinds_that_are_found_and_no_others() -> None:
    used = {
        node.attr
        for path in sorted((ROOT / "driftcheck" / "compare").glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Kind"
    }
    assert table_rows(README, "kind") == [kind.value for kind in Kind if kind.name in used]


def test_architecture_names_every_module_in_its_room() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = text.partition("\n## The rooms\n")[2].partition("\n## ")[0]
    _, *parts = re.split(r"^\*\*([^*]+)\*\*", rooms, flags=re.MULTILINE)
    named = {
        (room if room.endswith("/") else "") + name
        for room, paragraphs in zip(parts[::2], parts[1::2], strict=True)
        for name in re.findall(r"`([a-z_]+\.py)`", paragraphs)
    }
    package = ROOT / "driftcheck"
    modules = {path.relative_to(package) for path in package.rglob("*.py") if not path.name.startswith("__")}
    assert named == {path.as_posix() for path in modules}


def test_decisions_give_a_reason_for_every_dependency() -> None:
    text = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    dependencies = parse_toml((ROOT / "pyproject.toml").read_bytes())["project"]["dependencies"]
    names = {re.split(r"[^\w.-]", dependency)[0] for dependency in dependencies}
    assert "requests" in names
    assert {name for name in names if f"**{name}**" not in text} == set()


def test_the_page_of_commands_shows_all_help(pytestconfig: pytest.Config) -> None:
    parts = ["# Commands\n", f"```text\n{shown_help([])}```\n"]
    for command in HELP:
        name = command.split()[1]
        parts.append(f"## driftcheck {name}\n\n```text\n{shown_help([name])}```\n")
    page, text = ROOT / "docs" / "commands.md", "\n".join(parts)
    if pytestconfig.getoption("--update-reports"):
        page.write_text(text, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == text, "pytest --update-reports rewrites the page"


def shown_help(arguments: list[str]) -> str:
    return run([sys.executable, "-m", "driftcheck", *arguments, "--help"], PYTHONPATH=str(ROOT)).stdout


@pytest.mark.index
def test_the_site_is_built_without_a_network_and_its_commands_run(tmp_path: Path) -> None:
    """The commands are copied from the built page, as its reader would copy them; another test installs."""
    site = tmp_path / "site"
    nowhere = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
    command = ["uvx", "--offline", "--from", "mkdocs-material", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    fetched = run([*command[:1], *command[2:4], "mkdocs", "--version"])
    assert fetched.returncode == 0, fetched.stderr
    built = run([*command, "--config-file", str(ROOT / "mkdocs.yml")], **nowhere)
    assert built.returncode == 0, built.stderr
    pages = {page.relative_to(site).as_posix(): page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    for kind in Kind:
        assert f"kinds/{kind.value}.html" in pages
    for name, page in pages.items():
        assert not re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(?:https?:)?//', page), name
    blocks = re.findall(r"<pre[^>]*>(?:<span></span>)?<code[^>]*>(.*?)</code></pre>", pages["index.html"], re.DOTALL)
    commands = [html.unescape(re.sub(r"<[^>]+>", "", block)).strip() for block in blocks]
    assert commands[:2] == ["pip install .", AUDITS[0]]
    (tmp_path / "app.py").write_text("import vllm\nvllm.LLM(no_such_argument=1)\n", encoding="utf-8")
    ended = []
    for shown in commands[1:]:
        programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", shown],
            cwd=tmp_path,
            env={**os.environ, "PATH": programs},
            capture_output=True,
            text=True,
            check=False,
        )
        ended.append((done.returncode, done.stderr if done.returncode > 1 else ""))
    assert ended == [(1, "")] * 3
