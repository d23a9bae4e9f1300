"""Test-wide settings: no hypothesis deadlines, because correctness must not depend on how busy the machine is."""

import os

from hypothesis import settings

# Before torch is loaded: on a busy machine its threads should sleep while they wait, not spin.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

settings.register_profile("sphynx", deadline=None)
settings.load_profile("sphynx")
