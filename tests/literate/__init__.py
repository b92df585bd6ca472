"""Test cases written as Markdown: their grammar, their checks and the pytest plugin that collects them.

`docs/contributing-cases.md` says how to write one.
"""
