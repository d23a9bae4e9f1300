"""Sphynx: design networks that are cheap to run privately, and run them that way."""

__version__ = "0.1.0"
