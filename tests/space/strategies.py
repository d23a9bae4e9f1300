"""Hypothesis strategies for genotypes and designs: any cell the space allows, small enough to build."""

from dataclasses import replace

from hypothesis import strategies as st

from sphynx.space.cell import INPUT_NODES, Cell, Edge
from sphynx.space.choices import Borders, Stem
from sphynx.space.design import Design
from sphynx.space.genotype import OPERATIONS, Genotype, Space
from sphynx.space.micro import MicroDesign
from sphynx.space.stream import Stage, StreamDesign
from sphynx.space.tally import Shape


@st.composite
def cells(draw: st.DrawFn, space: Space, intermediates: int) -> Cell:
    def edge(node: int) -> Edge:
        return Edge(draw(st.sampled_from(OPERATIONS[space])), draw(st.integers(0, node - 1)))

    return tuple((edge(node), edge(node)) for node in range(INPUT_NODES, INPUT_NODES + intermediates))


@st.composite
def genotypes(draw: st.DrawFn, space: Space = "sphynx") -> Genotype:
    intermediates = draw(st.sampled_from([2, 4]))
    return Genotype(draw(cells(space, intermediates)), draw(cells(space, intermediates)), space)


images = st.builds(Shape, st.integers(1, 3), st.integers(5, 14), st.integers(5, 14))


@st.composite
def designs(draw: st.DrawFn) -> Design:
    depth = draw(st.integers(1, 6))
    stems: tuple[Stem, ...] = ("small", "imagenet")
    stem = draw(st.sampled_from(stems))
    return Design(
        genotype=draw(genotypes()),
        channels=draw(st.integers(2 if stem == "imagenet" else 1, 4)),
        depth=depth,
        reduce_positions=tuple(sorted(draw(st.sets(st.integers(0, depth - 1), max_size=3)))),
        image=draw(images),
        classes=draw(st.integers(1, 12)),
        stem=stem,
        balancing=draw(st.sampled_from(["relu", "flop"])),
        conv_stack=draw(st.sampled_from(["paper", "single", "pad_once"])),
        convolution=draw(st.sampled_from(["vanilla", "separable"])),
        inner_relus=draw(st.booleans()),
    )


micro_designs = st.builds(
    MicroDesign,
    genotype=genotypes("micro"),
    channels=st.integers(1, 3),
    depth=st.integers(1, 5),
    image=images,
    classes=st.integers(1, 5),
    balancing=st.sampled_from(["relu", "flop"]),
    share_relus=st.booleans(),
    preprocessing_relus=st.sampled_from(["all", "reductions", "none"]),
)


@st.composite
def stages(draw: st.DrawFn) -> tuple[Stage, ...]:
    made = draw(
        st.lists(
            st.builds(Stage, st.integers(1, 5), st.lists(st.integers(1, 4), max_size=2).map(tuple)),
            min_size=1,
            max_size=3,
        )
    )
    made[0] = replace(made[0], channels=(*made[0].channels, 2))  # at least one block
    return tuple(made)


@st.composite
def _stream_designs(draw: st.DrawFn) -> StreamDesign:
    """With no more stages than halve the image to a single pixel."""
    image, stride = draw(images), draw(st.sampled_from([1, 2, 3]))
    longest = -(-max(image.height, image.width) // stride)
    all_borders: tuple[Borders, ...] = ("zero", "halo")
    return StreamDesign(
        stages=draw(stages())[: 1 + (longest - 1).bit_length()],
        image=image,
        classes=draw(st.integers(1, 5)),
        stem_stride=stride,
        stem_kernel=draw(st.sampled_from([3, 5, 9])),
        borders=draw(st.sampled_from(all_borders)),
    )


stream_designs = _stream_designs()
