"""Of all tests."""

from hypothesis import settings

# A busy machine is slow, not wrong.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")
