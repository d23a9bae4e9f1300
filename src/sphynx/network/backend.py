"""Which of torch's convolution kernels run: on a CPU the faster ones, on a GPU those of the precision asked for.

On ARM, oneDNN computes the gradients of convolutions by its slow reference code: torch's own kernels take half the time
for a training step of a small Sphynx network (Neoverse-N1, one thread, batch 64: 0.29 s instead of 0.51 s). On x86
oneDNN is the fast one. NNPACK, which would then take the forward pass, spends more CPU time on maps this small, most of
all with several threads (published cells at C=4, D=4 on digits, two threads, batch 32: 12.9 CPU seconds per epoch with
it, 7.1 without; one thread: 7.7 and 6.9; one run each, on a busy machine). Maps of a few pixels take the way of
`small_maps`.

On a GPU torch rounds the operands of fp32 convolutions to TF32 (10 bits of mantissa) by default, but not those of
matrix products.
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


@contextmanager
def tensor_float32(*, allowed: bool) -> Iterator[None]:
    """Let convolutions in fp32 round their operands to TF32, or let nothing in fp32 do so.

    The setting is the process's, so a backward pass and the capture of a graph must lie within it.
    """
    convolutions, products = torch.backends.cudnn, torch.backends.cuda.matmul
    before = convolutions.allow_tf32, products.allow_tf32
    convolutions.allow_tf32 = allowed
    products.allow_tf32 = allowed and before[1]
    try:
        yield
    finally:
        convolutions.allow_tf32, products.allow_tf32 = before
