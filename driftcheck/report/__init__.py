"""A report in, text out: for people and for programs."""
