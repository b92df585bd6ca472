"""The gate before a command: what it looks at, that it becomes the command, and that it lets nothing else through."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from driftcheck.errors import DriftcheckError
from driftcheck.origins.commands import interpreter_of, program_of
from tests.fixes.environments import environment, install, python

TARGET = {"vllm/__init__.py": "def run(a): ...\n"}
FITTING = {"fitting/__init__.py": "import vllm\nvllm.run(1)\n"}
BROKEN = {"broken/__init__.py": "from vllm import run\nrun(1, b=2)\n"}
OTHER = {"other/__init__.py": "# vllm is named here and not used\n"}

Gate = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site-packages of an environment with a target, a client that fits, one that does not, and no client."""
    site = environment(tmp_path_factory.mktemp("gate") / "environment")
    for name, files in {"vllm": TARGET, "fitting": FITTING, "broken": BROKEN, "other": OTHER}.items():
        install(site, name, files)
    return site


def command_line(site: Path, folder: Path, *arguments: str) -> tuple[list[str], dict[str, str]]:
    kept = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    variables = {**kept, "DRIFTCHECK_CACHE_DIR": str(folder / "cache"), "PATH": f"{python(site).parent}:{kept['PATH']}"}
    # As an installed driftcheck finds itself: in its own environment, whatever the command's.
    start = f"sys.path.insert(0, {str(Path(__file__).parents[1])!r}); from driftcheck.cli import main; sys.exit(main())"
    return [sys.executable, "-c", f"import sys; {start}", *arguments], variables


@pytest.fixture
def gate(installed: Path, tmp_path: Path) -> Gate:
    def run(*arguments: str, name: str = "gate") -> subprocess.CompletedProcess[str]:
        interpreter = ("--python", str(python(installed))) if name == "environment" else ()
        command, variables = command_line(installed, tmp_path, name, "--static", "--offline", *interpreter, *arguments)
        return subprocess.run(command, env=variables, capture_output=True, text=True, check=False, cwd=tmp_path)

    return run


def test_what_fits_is_run_as_if_nothing_had_been_before_it(gate: Gate, installed: Path) -> None:
    code = "import sys, json; print(json.dumps([sys.argv, sys.executable])); sys.stderr.write('own'); sys.exit(7)"
    done = gate("--client", "fitting", "--", "python", "-c", code, "--x", "--", "y z")
    assert done.returncode == 7
    assert json.loads(done.stdout) == [["-c", "--x", "--", "y z"], str(python(installed))]
    first, second, rest = done.stderr.split("\n", 2)
    assert first == "driftcheck: fitting 1.0 fits vllm 1.0"
    assert second.startswith("driftcheck: fitting was judged without a baseline")
    assert rest == "own"


def test_what_does_not_fit_is_not_run(gate: Gate) -> None:
    done = gate("--", "python", "-c", "print('ran')")
    assert (done.returncode, done.stdout) == (1, "")
    assert "unknown argument 'b'" in done.stderr
    assert "driftcheck: python was not started" in done.stderr
    assert "fitting" not in done.stderr
    assert "other" not in done.stderr
    assert gate("--skip", "broken", "--", "python", "-c", "print('ran')").stdout == "ran\n"


def test_the_settings_of_the_working_folder_count(gate: Gate, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.driftcheck]\nignore = ['unknown-argument']\n", encoding="utf-8")
    assert gate("--", "python", "-c", "print('ran')").stdout == "ran\n"
    assert gate("--fail-on", "eror", "--", "python").returncode == 2


def test_a_folder_of_a_client_s_name_is_not_taken_for_it(gate: Gate, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "app.py").write_text("import vllm\n", encoding="utf-8")
    assert gate("--", "python", "-c", "").returncode == 1


def test_the_command_has_the_process_and_its_signals(installed: Path, tmp_path: Path) -> None:
    script = (
        "import os, signal, sys, time\n"
        "def stop(number, frame):\n    print('stopped', flush=True)\n    sys.exit(3)\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        "status = open('/proc/self/status').read() if os.path.exists('/proc/self/status') else ''\n"
        "print(os.getpid(), flush=True)\n"
        "while True: time.sleep(0.05)\n"
    )
    options = ("gate", "--static", "--offline", "--client", "fitting", "--", "python", "-c", script)
    command, variables = command_line(installed, tmp_path, *options)
    with subprocess.Popen(command, env=variables, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{process.pid}\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "stopped\n"
        assert process.wait() == 3


def test_a_command_that_is_killed_has_died_of_that_signal(gate: Gate) -> None:
    done = gate("--client", "fitting", "--", "python", "-c", "import os; os.kill(os.getpid(), 9)")
    assert done.returncode == -9


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc to ask")
def test_no_signal_is_ignored_that_was_not_before(gate: Gate) -> None:
    done = gate("--client", "fitting", "--", "sh", "-c", "grep SigIgn /proc/self/status")
    ignored = int(done.stdout.split()[1], 16)
    assert not ignored & 1 << (signal.SIGPIPE - 1)


def test_the_last_clean_pass_counts_until_anything_changes(gate: Gate, installed: Path, tmp_path: Path) -> None:
    options = ("--cache", "--client", "fitting", "--", "python", "-c", "print('ran')")
    unchanged = "driftcheck: fitting 1.0 fits vllm 1.0 (nothing has changed)\n"
    assert unchanged not in gate(*options).stderr
    again = gate(*options)
    assert (again.stdout, again.stderr) == ("ran\n", unchanged)
    assert gate("--cache", "--client", "other", "--", "python", "-c", "").stderr != unchanged
    for file, text in {
        installed / "fitting/__init__.py": "import vllm\nvllm.run(1)  # edited\n",
        installed / "fitting/more.py": "import vllm\n",
        installed / "vllm/__init__.py": "def run(a, c=1): ...\n",
        installed / "another-1.0.dist-info/RECORD": "another.py,,\n",
        tmp_path / "pyproject.toml": "[tool.driftcheck]\nfail-on = 'note'\n",
    }.items():
        before = file.read_bytes() if file.exists() else None
        about = file.stat() if file.exists() else None
        file.parent.mkdir(exist_ok=True)
        file.unlink(missing_ok=True)
        file.write_text(text, encoding="utf-8")
        if about is not None:
            os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))
        changed = gate(*options)
        assert (changed.stdout, unchanged in changed.stderr) == ("ran\n", False), file
        file.unlink()
        if before is not None:
            file.write_bytes(before)
        elif file.parent.name.endswith(".dist-info"):
            file.parent.rmdir()
    assert unchanged not in gate(*options).stderr
    assert gate(*options).stderr == unchanged


def test_what_does_not_fit_is_never_remembered(gate: Gate) -> None:
    for _ in range(2):
        assert gate("--cache", "--", "python", "-c", "print('ran')").returncode == 1


def test_a_damaged_memory_is_none(gate: Gate, tmp_path: Path) -> None:
    options = ("--cache", "--client", "fitting", "--", "python", "-c", "print('ran')")
    gate(*options)
    [kept] = (tmp_path / "cache" / "passes").iterdir()
    for content in (b"", b"[]", b'{"said": 1, "digest": 2, "places": 3}', b"[" * 100_000):
        kept.write_bytes(content)
        done = gate(*options)
        assert (done.stdout, "nothing has changed" in done.stderr) == ("ran\n", False)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--"], "name the command to run, after --"),
        ([], "name the command to run, after --"),
        (["--", "no-such-program"], "no-such-program: there is no such program"),
        (["--client", "no-such-client", "--", "python"], "no-such-client is not installed"),
        (["--python", "no-such-python", "--", "python"], "no such interpreter"),
        (["--", "./empty"], "./empty: there is no such program"),
        (["--client", "fitting", "--", "./wrong"], "./wrong can't be started"),
    ],
)
def test_what_cannot_be_done_is_2_and_nothing_is_run(
    arguments: list[str], complaint: str, gate: Gate, tmp_path: Path
) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "wrong").write_bytes(b"\x7fELF nothing")
    (tmp_path / "wrong").chmod(0o755)
    done = gate(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr.splitlines()[-1]
    assert "fault" not in done.stderr


def test_every_distribution_that_uses_the_target_in_one_table(gate: Gate) -> None:
    done = gate(name="environment")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "distribution  version  requires  verdict",
        "broken        1.0      -         does not fit: 1 error",
        "fitting       1.0      -         fits",
        "",
        "2 distributions that use vllm 1.0: 1 does not fit; driftcheck audit NAME says more.",
    ]
    fitting = gate("--skip", "broken", name="environment")
    assert (fitting.returncode, fitting.stdout.splitlines()[-1]) == (0, "1 distribution that uses vllm 1.0: all fit.")
    none = gate("--skip", "broken", "--skip", "fitting", name="environment")
    assert (none.returncode, none.stdout) == (0, "Nothing that is installed uses vllm 1.0.\n")


def test_the_table_as_json(gate: Gate) -> None:
    done = gate("--format", "json", "--client", "broken", "--client", "gone", name="environment")
    assert done.returncode == 2
    document = json.loads(done.stdout)
    assert document["target"] == {"name": "vllm", "version": "1.0"}
    broken, gone = document["clients"]
    assert broken["verdict"] == "drifted"
    assert broken["findings"] == {"error": 1, "silent": 0, "warning": 0, "note": 0}
    assert (gone["verdict"], gone["version"]) == ("unchecked", None)
    assert "gone is not installed" in gone["reason"]


def test_pins_are_shown_and_held_against_what_is_there(tmp_path: Path) -> None:
    site = environment(tmp_path / "environment")
    install(site, "vllm", TARGET)
    for name, requirement in {"exact": "vllm==0.11.0", "wide": "vllm>=1", "extra": "vllm<2 ; extra == 'fast'"}.items():
        install(site, name, {f"{name}.py": "import vllm\nvllm.run(1)\n"})
        metadata = site / f"{name}-1.0.dist-info/METADATA"
        text = metadata.read_text(encoding="utf-8").replace("\nVersion:", f"\nRequires-Dist: {requirement}\nVersion:")
        metadata.unlink()
        metadata.write_text(text, encoding="utf-8")
    options = ("environment", "--static", "--offline", "--python", str(python(site)))
    command, variables = command_line(site, tmp_path, *options)
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stdout.splitlines()[1:4] == [
        "exact         1.0      vllm==0.11.0 (not met)  fits",
        "extra         1.0      vllm<2 [fast]           fits",
        "wide          1.0      vllm>=1                 fits",
    ]
    assert done.returncode == 0


# Which Python a command runs


# What uv writes into the scripts of an environment that may be moved.
RELATIVE = """\'\'\'exec' "$(dirname -- "$(realpath -- "$0")")"/'python3.12' "$0" "$@"\n' \'\'\'\n"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    scripts = {
        "python3.12": "#!/bin/sh\n",
        "torchrun": f"#!{folder}/python3.12\n",
        "by-env": "#!/usr/bin/env python3.12\n",
        "by-env-split": "#!/usr/bin/env -S python3.12 -u\n",
        "long": f"#!/bin/sh\n'''exec' \"{folder}/python3.12\" \"$0\" \"$@\"\n' '''\n",
        "relative": "#!/bin/sh\n" + RELATIVE,
        "srun": "#!/bin/sh\n",
        "binary": "\x7fELF",
    }
    for name, text in scripts.items():
        (folder / name).write_text(text, encoding="latin-1")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.parametrize(
    "command",
    [
        "python3.12 train.py",
        "torchrun --nproc-per-node 8 train.py",
        "by-env",
        "by-env-split",
        "long",
        "relative",
        "srun -n 4 python3.12 train.py",
        "srun A=1 torchrun x",
        "binary torchrun",
    ],
)
def test_the_python_of_a_command(command: str, programs: Path) -> None:
    assert interpreter_of(command.split(), {"PATH": str(programs)}) == programs / "python3.12"


def test_the_python_of_a_command_that_names_none(programs: Path, tmp_path: Path) -> None:
    site = environment(tmp_path / "environment")
    variables = {"PATH": str(programs), "VIRTUAL_ENV": str(tmp_path / "environment")}
    assert interpreter_of(["srun", "run.sh"], variables) == python(site)
    (programs / "python").symlink_to("python3.12")
    assert interpreter_of(["srun", "run.sh"], {"PATH": str(programs)}) == programs / "python"
    (programs / "python").unlink()
    with pytest.raises(DriftcheckError, match="name it with --python"):
        interpreter_of(["srun", "run.sh"], {"PATH": str(programs)})
    with pytest.raises(DriftcheckError, match="there is no such program"):
        program_of(["py\0thon"], {"PATH": str(programs)})
