"""Tests of where code is found."""
