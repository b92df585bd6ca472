"""Which files of a client have to do with the target."""

from __future__ import annotations

from driftcheck.audit import audit_trees
from driftcheck.errors import DriftcheckError
from driftcheck.origins.layout import import_roots
from driftcheck.surface.modules import ModuleIndex
from driftcheck.tree import MemoryTree
from driftcheck.usage.files import ClientFiles

TARGET = MemoryTree({"vllm/__init__.py": ""}, "vllm", "1.0")
CLIENT = MemoryTree(
    {
        "app/__init__.py": "",
        "app/main.py": (
            "import vllm\n"
            'vllm.LLM("m", worker_extension_cls="app.extension.Extension")\n'
            "vllm.LLM('m', other='app.plugin:load')\n"
        ),
        "app/extension.py": "class Extension:\n    def grab(self):\n        return self.model_runner.model\n",
        "app/plugin.py": "def load(): ...\n",
        "app/importer.py": "import app.extension\n",
        "app/other.py": 'print("app.unused.Thing")\n',
        "app/unused.py": "x = 1\n",
    },
    "app",
)


def test_what_a_string_names_belongs_to_it_and_so_does_what_imports_that() -> None:
    modules = ClientFiles(CLIENT, TARGET).modules([])
    assert [module.name for module in modules] == ["app.extension", "app.importer", "app.main", "app.plugin"]


class Unreadable(MemoryTree):
    """A tree of which one file can't be read."""

    def read(self, path: str) -> bytes:
        if path == "app/large.py":
            raise DriftcheckError("has too many bytes")
        return super().read(path)


def test_a_file_that_cannot_be_read_is_skipped_whatever_is_looked_for() -> None:
    source = "import vllm\nif hasattr(vllm, 'gone'):\n    vllm.gone()\nvllm.missing()\n"
    client = Unreadable({"app/__init__.py": "", "app/main.py": source, "app/large.py": ""}, "app")
    report = audit_trees(client, TARGET)
    assert [skipped.path for skipped in report.client.skipped] == ["app/large.py"]
    assert [finding.location.line for finding in report.findings] == [4]


def test_files_of_one_module_name_are_all_read() -> None:
    gone = "from vllm import gone\n"
    files = {
        "one/src/main.py": gone,
        "one/src/helper.py": "",
        "other/src/main.py": f"import helper\n{gone}",
        "other/src/helper.py": gone,
        "package/__init__.py": "",
        "package/tool.py": gone,
        "package/tool/__init__.py": gone,
        "src/package/__init__.py": "",
        "src/package/part.py": gone,
        "src/package/part.pyi": gone,
    }
    client = MemoryTree(files, "app", roots=import_roots(files))
    index = ModuleIndex(client)
    assert index.sources["package.tool"] == "package/tool/__init__.py"
    assert index.sources["package"] == "src/package/__init__.py"
    assert index.sources["main"] == "one/src/main.py"
    assert {index.name_of(path) for path in files} - {None} == set(index.sources)
    report = audit_trees(client, TARGET)
    assert report.client.files == 9
    assert sorted(finding.location.path for finding in report.findings) == [
        path for path, source in sorted(files.items()) if gone in source and path.endswith(".py")
    ]
