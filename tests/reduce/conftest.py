"""A reduction trains too, and is tested with one thread as training is."""

from tests.train.conftest import one_thread

__all__ = ["one_thread"]
