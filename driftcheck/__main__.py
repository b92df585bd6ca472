"""Lets `python -m driftcheck` do what `driftcheck` does."""

from driftcheck.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
