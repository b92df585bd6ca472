"""Fixes: what findings come to as edited text, and the ways in which that reaches a reader, a file or a folder."""
