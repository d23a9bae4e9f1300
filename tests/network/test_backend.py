"""The choice of kernels changes the time of a convolution, not its result, and is undone."""

import platform

import pytest
import torch
from torch.nn import functional

from sphynx.network.backend import fast_convolutions


@pytest.mark.parametrize("machine", ["aarch64", "x86_64"])
def test_gradients_are_the_same_and_the_setting_is_put_back(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    before = torch._C._get_mkldnn_enabled()
    generator = torch.Generator().manual_seed(0)
    x, weight = (torch.randn(shape, generator=generator) for shape in ((4, 5, 8, 8), (5, 5, 3, 3)))
    results = []
    for device in (torch.device("cpu"), torch.device("meta")):  # "meta" leaves torch's choice as it is
        w = weight.clone().requires_grad_()
        with fast_convolutions(device):
            functional.conv2d(x, w, padding=1, stride=2).square().sum().backward()
        results.append(w.grad)
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-3)
    with pytest.raises(KeyboardInterrupt), fast_convolutions(torch.device("cpu")):
        raise KeyboardInterrupt
    assert torch._C._get_mkldnn_enabled() == before
