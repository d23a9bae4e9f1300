"""Which of torch's convolution kernels run on a CPU.

On ARM, oneDNN computes the gradients of convolutions by its slow reference code: torch's own kernels take half the time
for a training step of a small Sphynx network (Neoverse-N1, one thread, batch 64: 0.29 s instead of 0.51 s). On x86
oneDNN is the fast one. NNPACK, which would then take the forward pass, spends more CPU time on maps this small, most of
all with several threads (published cells at C=4, D=4 on digits, two threads, batch 32: 12.9 CPU seconds per epoch with
it, 7.1 without; one thread: 7.7 and 6.9; one run each, on a busy machine). Maps of a few pixels take the way of
`small_maps`.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from sphynx.network.small_maps import SmallMaps


@contextmanager
def fast_convolutions(device: torch.device) -> Iterator[None]:
    if device.type != "cpu" or platform.machine() not in ("aarch64", "arm64"):
        yield
        return
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        with torch.backends.nnpack.flags(enabled=False), SmallMaps():
            yield
    finally:
        torch._C._set_mkldnn_enabled(before)
