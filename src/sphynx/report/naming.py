"""Names of networks and data sets in tables and figures."""

from __future__ import annotations

from sphynx.space.design import Design
from sphynx.space.files import AnyDesign
from sphynx.space.graph import GraphDesign
from sphynx.space.macro import MacroDesign
from sphynx.space.micro import MicroDesign
from sphynx.space.reduced import ReducedDesign
from sphynx.space.reference import WideResNetDesign
from sphynx.space.stream import StreamDesign
from sphynx.space.tally import Shape

# The paper's data sets: shape of an image, number of classes.
DATA_SETS = {
    "cifar100": (Shape(3, 32, 32), 100),
    "tiny-imagenet": (Shape(3, 64, 64), 200),
    "imagenet": (Shape(3, 224, 224), 1000),
}


def describe_network(design: AnyDesign) -> str:
    """Name what sets a network apart from others of its family, in a few words."""
    if isinstance(design, StreamDesign):
        return f"stream {design}, {design.borders} borders"
    if isinstance(design, ReducedDesign):
        return f"{describe_network(design.base)}, reduced"
    if isinstance(design, WideResNetDesign):
        return f"WRN-{design.depth}-{design.width}"
    if isinstance(design, MacroDesign):
        return f"macro network, {sum(map(len, design.stages))} layers, C={design.channels}"
    if isinstance(design, GraphDesign):
        return f"{design.name or 'network'} as a graph"
    if not isinstance(design, Design | MicroDesign):
        return f"{type(design).__name__.removesuffix('Design')}, width {design.width}"
    text = f"C={design.channels} D={design.depth} reduce {','.join(map(str, design.reduce_positions))}"
    if isinstance(design, Design) and design.conv_stack != "paper":
        text += f", {design.conv_stack} convolutions"
    return text
