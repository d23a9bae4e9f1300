"""The version, in a module of its own: what is below `import sphynx` never imports that."""

from __future__ import annotations

__version__ = "0.1.0"
"""The version of this installation.

    >>> sphynx.__version__.count(".")
    2
"""
