"""Test-wide settings: no hypothesis deadlines, because correctness must not depend on how busy the machine is."""

from hypothesis import settings

settings.register_profile("sphynx", deadline=None)
settings.load_profile("sphynx")
