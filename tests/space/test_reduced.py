"""Reduced designs: exact counts, a JSON round trip, and files that are not ones."""

import base64
import dataclasses
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sphynx.errors import InputError
from sphynx.network.build import build_network
from sphynx.network.reduced import describe_layers, rectified_layers
from sphynx.network.trained import count_parameters
from sphynx.space.files import any_design_from_json, design_fingerprint
from sphynx.space.reduced import Activations, NonlinearCounts, ReducedDesign
from sphynx.space.reference import Vgg11Design
from sphynx.space.stream import Stage, StreamDesign
from sphynx.space.tally import Shape

BASE = StreamDesign((Stage(4, (2, 3)),), Shape(1, 4, 4), 3, name="base")  # maps of 2x2
NAMES = ("stages.0.0.to_relus.2", "stages.0.1.to_relus.2")


@given(st.text("ri0s", min_size=8, max_size=8), st.text("ri0s", min_size=3, max_size=3))
def test_counts_and_files_of_any_letters(values: str, channels: str) -> None:
    layers = (Activations(NAMES[0], Shape(2, 2, 2), values), Activations(NAMES[1], Shape(3, 2, 2), channels))
    design = ReducedDesign(BASE, layers, "reduced")
    assert design.relus == values.count("r") + 4 * channels.count("r") == design.counts.relus
    assert design.counts.squares == values.count("s") + 4 * channels.count("s")
    assert any_design_from_json(design.to_json()) == design
    assert count_parameters(build_network(design)) == design.parameters
    other = dataclasses.replace(design, name="", base=dataclasses.replace(BASE, name="other"))
    assert design_fingerprint(other) == design_fingerprint(design)


def test_values_of_whole_channels_are_written_as_channels() -> None:
    layer = Activations("a", Shape(2, 2, 2), "rrrriiii")
    assert layer == Activations("a", Shape(2, 2, 2), "ri") and not layer.is_per_value
    assert layer.counts == NonlinearCounts(relus=4, truncations=4)
    assert Activations("a", Shape(2, 2, 2), "iiiiiiii").counts == NonlinearCounts()  # nothing beside is truncated


def test_layers_of_any_network_are_found_by_name() -> None:
    design = Vgg11Design(width=2, image=Shape(1, 32, 32), classes=3, hidden=5)
    layers = rectified_layers(build_network(design), design.image)
    assert sum(shape.size for shape in layers.values()) == design.relus
    assert layers["classifier.1"] == Shape(5, 1, 1)
    reduced = ReducedDesign(design, describe_layers(layers, {name: "i" * s.channels for name, s in layers.items()}))
    assert reduced.counts == NonlinearCounts(comparisons=design.account.total.comparisons)


@pytest.mark.parametrize(
    ("layers", "what"),
    [
        ([{"layer": "a", "shape": [2, 2, 2], "channels": "rx"}], "letter 'x'"),
        ([{"layer": "a", "shape": [2, 2, 2], "channels": "rrr"}], "3 letters"),
        ([{"layer": "a", "shape": [2, 2], "channels": "rr"}], "layers: entry 0: expected a layer"),
        ([{"layer": "a", "shape": [2, 2, 2], "values": "???"}], "layers: entry 0: expected a layer"),
        ([{"layer": "a", "shape": [1 << 20, 1 << 20, 2], "channels": "rr"}], "a is"),
        ([{"layer": "a", "shape": [2, 2, -2], "values": ""}], "a is 2x2x-2"),
        ([{"layer": "a", "shape": [1, 1, 1], "channels": "r"}] * 2, "named twice"),
        ("rr", "layers: expected a list"),
    ],
)
def test_files_that_are_not_reduced_designs_are_refused(layers: object, what: str) -> None:
    with pytest.raises(InputError, match=what):
        any_design_from_json({"format": "sphynx-reduced/1", "base": BASE.to_json(), "layers": layers})


def test_letters_are_unpacked_no_further_than_the_layer_is_large() -> None:
    bomb = base64.b64encode(zlib.compress(b"r" * 10_000_000)).decode()
    with pytest.raises(InputError, match="9 letters"):
        any_design_from_json(
            {
                "format": "sphynx-reduced/1",
                "base": BASE.to_json(),
                "layers": [{"layer": "a", "shape": [2, 2, 2], "values": bomb}],
            }
        )


def test_a_reduced_base_and_unknown_layers_are_refused() -> None:
    design = ReducedDesign(BASE, (Activations("head", Shape(3, 1, 1), "rrr"),))
    with pytest.raises(InputError, match="no ReLU layer 'head'"):
        build_network(design)
    with pytest.raises(InputError, match="reduced design itself"):
        any_design_from_json({"format": "sphynx-reduced/1", "base": design.to_json(), "layers": []})
