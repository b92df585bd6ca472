"""Where code is found: a folder, an installed distribution, a release of the index, a git ref; each gives a tree."""
