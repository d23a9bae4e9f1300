"""From a ReLU budget to a network: plan it, build it, run an image through it, count what really happened.

python examples/01_design_a_network.py
"""

from pathlib import Path

import torch

import sphynx
from sphynx.network.observe import observe
from sphynx.space.cell_svg import cell_svg

RELU_BUDGET = 25_600
OUT = Path("out/examples")

# 1. Which channels and depth meet the budget, for images of CIFAR-100?
plans = sphynx.plan(RELU_BUDGET, image=(3, 32, 32), classes=100)
print(f"{len(plans.plans)} (C, D) pairs are within 5 % of {RELU_BUDGET:,} ReLUs. {plans.reason}")

# 2. The paper found that reducing early pays at this budget: both reduce cells first.
chosen = plans.design
design = sphynx.Design(chosen.genotype, chosen.channels, chosen.depth, reduce_positions=(0, 1), name="sphynx-25.6k")

# 3. Build it and watch one image go through: what is counted is what happens.
network = sphynx.build_network(design).eval()
seen = observe(network, design.image)
with torch.no_grad():
    logits = network(torch.rand(1, *design.image))
print(f"built: {seen.parameters:,} parameters, logits {tuple(logits.shape)}")
print(f"a forward pass was seen to do {seen.relus:,} ReLUs and {seen.macs:,} multiply-accumulates")
assert (seen.relus, seen.parameters, seen.macs) == (design.relus, design.parameters, design.macs)

# 4. Keep the design and draw its cells.
OUT.mkdir(parents=True, exist_ok=True)
design.save(OUT / "design.json")
for kind, cell in (("normal", design.genotype.normal), ("reduce", design.genotype.reduce)):
    (OUT / f"{kind}.svg").write_text(cell_svg(cell, title=f"Sphynx {kind} cell"))
print(f"wrote {OUT}/design.json, normal.svg, reduce.svg")
