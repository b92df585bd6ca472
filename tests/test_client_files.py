"""Which files of a client have to do with the target."""

from __future__ import annotations

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
