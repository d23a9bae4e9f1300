"""Which CPU library runs convolutions. On 64-bit ARM, oneDNN takes 2 to 10 times as long as torch's own kernels for the
few-channel, grouped and dilated convolutions of this project (measured on Neoverse-N1, torch 2.13), so it is switched
off there; on other processors it stays as it is."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager

import torch

SLOW_ONEDNN_MACHINES = ("aarch64", "arm64")


@contextmanager
def small_convolutions(device: torch.device | str) -> Iterator[None]:
    """Within it, convolutions on `device` run on what is fastest for few channels."""
    if torch.device(device).type != "cpu" or platform.machine() not in SLOW_ONEDNN_MACHINES:
        yield
        return
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)
