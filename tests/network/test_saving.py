"""A trained network that does not fit on the disk is an error with a remedy, and leaves no torn file."""

import os
import resource
from pathlib import Path

import pytest

from sphynx.errors import InputError
from sphynx.network.build import build_network
from sphynx.network.trained import save_model
from sphynx.space.design import Design
from sphynx.space.published_cells import SPHYNX
from sphynx.space.tally import Shape


def test_a_disk_that_takes_no_more_is_told_with_the_file(tmp_path: Path) -> None:
    network = build_network(Design(SPHYNX, 2, 3, (1, 2), Shape(3, 32, 32), 4))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(InputError, match=r"model\.safetensors: it cannot be written"):
            save_model(tmp_path, network)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())


def test_nobody_else_reads_weights(tmp_path: Path) -> None:
    old_mask = os.umask(0o022)
    try:
        save_model(tmp_path, build_network(Design(SPHYNX, 2, 3, (1, 2), Shape(3, 32, 32), 4)))
    finally:
        os.umask(old_mask)
    assert (tmp_path / "model.safetensors").stat().st_mode & 0o777 == 0o600
