"""driftcheck: finds where Python code no longer fits the library release that will run it."""

__version__ = "0.1.0"
