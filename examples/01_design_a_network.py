"""From a ReLU budget to a network: plan it, build it, run an image through it, count what really happened.

python examples/01_design_a_network.py
"""

from pathlib import Path

import torch

from sphynx.network.builder import SphynxNetwork
from sphynx.network.observe import observe
from sphynx.space.cell_svg import cell_svg
from sphynx.space.design import Design
from sphynx.space.files import save_design
from sphynx.space.planner import plan
from sphynx.space.published_cells import SPHYNX

RELU_BUDGET = 25_600
OUT = Path("out/demo")

# 1. Which channels and depth meet the budget? The rest of the design comes from a template.
template = Design(SPHYNX, channels=5, depth=5, reduce_positions=(0, 1))
plans = plan(template, RELU_BUDGET, tolerance=0.05)
print(f"{len(plans.plans)} (C, D) pairs are within 5 % of {RELU_BUDGET:,} ReLUs. {plans.reason}")

# 2. The paper found that reducing early pays at this budget: both reduce cells first.
chosen = plans.chosen.design
design = Design(chosen.genotype, chosen.channels, chosen.depth, reduce_positions=(0, 1), name="sphynx-25.6k")

# 3. Build it and watch one image go through.
network = SphynxNetwork(design).eval()
seen = observe(network, design.image)
with torch.no_grad():
    logits = network(torch.rand(1, *design.image))
print(f"built: {seen.parameters:,} parameters, logits {tuple(logits.shape)}")
print(f"a forward pass was seen to do {seen.relus:,} ReLUs and {seen.macs:,} multiply-accumulates")
assert seen.relus == 32 * 32 * design.channels * design.depth

# 4. Keep the design and draw its cells.
OUT.mkdir(parents=True, exist_ok=True)
save_design(design, OUT / "design.json")
for kind, cell in (("normal", design.genotype.normal), ("reduce", design.genotype.reduce)):
    (OUT / f"{kind}.svg").write_text(cell_svg(cell, title=f"Sphynx {kind} cell"))
print(f"wrote {OUT}/design.json, normal.svg, reduce.svg")
