"""The tests of driftcheck."""
