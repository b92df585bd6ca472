"""`pytest tests/compare --hypothesis-profile thorough` takes a minute or two: 20,000 examples a property."""

from hypothesis import settings

settings.register_profile("thorough", max_examples=20_000, deadline=None)
