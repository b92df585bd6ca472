"""Makes Markdown files of cases, wherever they are, part of the test suite."""

pytest_plugins = ["pytester", "tests.literate.plugin"]
