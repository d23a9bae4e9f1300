"""Which of timm's networks can be compiled: one of each family with random weights, into results/zoo/timm.json.

    pip install --no-deps timm torchvision huggingface_hub pyyaml tqdm
    python -m benchmarks.zoo_timm [NAME ...]

Each is read and fused as `sphynx compile` does it, exactly where that can be and else with smooth activations allowed,
and the graph is evaluated in double precision on one picture beside the module: what is kept is by how much the logits
differ, or why the network is refused. Nothing is rounded to integers yet, so no accuracy follows from this.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np
import torch
from torch import nn

from benchmarks.zoo_torchvision import models as torchvision_models
from sphynx.compiler.frontend.export.module import read_module
from sphynx.errors import InputError
from sphynx.program.interpret import evaluate
from sphynx.record import Record
from sphynx.space.tally import Shape

FILE = Path(__file__).parents[1] / "results/zoo/timm.json"
SMALL, LARGE = 64, 96  # pixels; inception's pools need more than the small ones
FAMILIES = (
    "resnet18", "resnet26d", "resnetblur50", "resnetv2_50", "res2net50_26w_4s", "resnest14d", "seresnet18",
    "skresnet18", "ecaresnet26t", "gcresnet33ts", "regnetx_002", "regnety_002", "gernet_s", "repvgg_a0", "mobileone_s0",
    "vgg11_bn", "densenet121", "dpn68", "dla34", "hrnet_w18_small", "selecsls42", "ese_vovnet19b_dw", "hgnet_tiny",
    "tresnet_m", "darknet53", "cspresnet50", "xception41", "inception_v3", "mobilenetv2_100", "mobilenetv3_small_100",
    "mobilenetv4_conv_small", "mobilenet_edgetpu_100", "mnasnet_small", "spnasnet_100", "fbnetc_100", "hardcorenas_a",
    "lcnet_050", "tinynet_e", "mixnet_s", "efficientnet_lite0", "ghostnet_100", "ghostnetv2_100", "repghostnet_050",
    "rexnet_100", "repvit_m0_9", "fasternet_t0", "starnet_s1", "nf_resnet26", "nf_regnet_b0", "nfnet_l0",
    "convnext_atto", "edgenext_xx_small", "shvit_s1",
)  # fmt: skip


@dataclass(frozen=True)
class Read(Record):
    """How a network was read. `refused` says why it was not."""

    network: str
    size: int
    approximated: bool = False  # it has smooth activations
    deviation: float | None = None  # of the logits from the module's, in single precision, relative to the largest
    refused: str = ""


def read(name: str) -> Read:
    size = LARGE if name.startswith("inception") else SMALL
    torch.manual_seed(0)
    torchvision_models()  # which timm imports; its compiled operators may be missing
    import timm

    module, why = timm.create_model(name, pretrained=False, num_classes=10).eval(), ""
    for approximate in (False, True):
        try:
            deviation = _deviation(module, size, approximate=approximate)
        except InputError as error:
            why = " ".join(error.what.split())
        else:
            return Read(name, size, approximate, deviation)
    return Read(name, size, refused=why)


def _deviation(module: nn.Module, size: int, *, approximate: bool) -> float:
    found, black, plain = read_module(module, Shape(3, size, size), approximate=approximate), (0.0,) * 3, (1.0,) * 3
    fused = found.trace(black, plain, cuts=found.trace(black, plain, outline=True).joints)
    pixels = np.random.default_rng(0).integers(0, 256, (1, 3, size, size))
    with torch.no_grad():
        expected = module(torch.from_numpy(pixels / 255).float()).numpy()
    got = evaluate(fused.graph, fused.weights, pixels.astype(np.float64), lambda *_: None)
    return float(np.abs(got.reshape(expected.shape) - expected).max() / np.abs(expected).max())


def main() -> None:
    kept = {row["network"]: row for row in json.loads(FILE.read_text())["networks"]} if FILE.is_file() else {}
    for name in sys.argv[1:] or FAMILIES:
        row = read(name)
        print(row, flush=True)
        kept[name] = row.to_json()
        rows = [kept[each] for each in FAMILIES if each in kept]
        FILE.write_text(json.dumps({"timm": metadata.version("timm"), "networks": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
