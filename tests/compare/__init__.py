"""Tests of the comparison of calls with signatures."""
