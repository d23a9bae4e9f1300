"""`sphynx compile`: a trained network as a fused fixed-point program for private inference."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli.design_options import Json
from sphynx.cli.output import count, nonlinear_text, print_json, print_table, range_text, short
from sphynx.cli.output_files import out_folder
from sphynx.cli.train import DataSize, KnownStream, open_known
from sphynx.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sphynx.data.images import Data
    from sphynx.data.streamed import StreamedData
    from sphynx.program.ir import Linear, Program
    from sphynx.program.quantise import Precision, Quantised

    # A network that was read and can be compiled; data may take long to open, so they are opened after that.
    Compiles = Callable[[Data | StreamedData], Quantised]


def compile_run(
    run: Annotated[
        str, typer.Argument(help="A trained run folder, its model.safetensors, a model's name, or a network.onnx.")
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="The folder for program.json and weights.safetensors.", callback=out_folder),
    ],
    calibrate: Annotated[
        str, typer.Option("--calibrate", help="Data as the network was trained on; else what the run itself names.")
    ] = "",
    mean: Annotated[
        str,
        typer.Option("--mean", help="For ONNX: subtracted from pixel/255; a number, or one per channel. [default: 0]"),
    ] = "",
    std: Annotated[
        str, typer.Option("--std", help="For ONNX: what that is divided by; a number, or one per channel. [default: 1]")
    ] = "",
    weight_bits: Annotated[
        int | None, typer.Option("--weight-bits", help="Bits of a weight, 6 to 16. Unless given, as many as it takes.")
    ] = None,
    activation_bits: Annotated[
        int, typer.Option("--activation-bits", help="With --weight-bits: bits that a ReLU keeps, 4 to 24.")
    ] = 10,
    link_bits: Annotated[
        int, typer.Option("--link-bits", help="With --weight-bits: of a weight inside a chain of maps, 4 to 16.")
    ] = 7,
    derivable: Annotated[
        bool,
        typer.Option(
            "--derivable",
            help="For a model that comes with Sphynx: corrections.safetensors in place of the weights, which are "
            "derived from it and the model when they are needed.",
        ),
    ] = False,
    image_size: DataSize = None,
    stream: KnownStream = None,
    as_json: Json = False,
) -> None:
    """Fold, fuse and quantise a trained network. program.json is public, weights.safetensors is the server's secret.

    Examples:

      sphynx compile runs/digits -o compiled/digits

      sphynx compile runs/paper/seed-0 --calibrate cifar100 --weight-bits 10 -o compiled/paper

      sphynx compile sphynx-cifar100-25k -o models/src/sphynx_models/sphynx-cifar100-25k/program --derivable

      sphynx compile mine.onnx --calibrate cifar10 --mean 0.49,0.48,0.45 --std 0.25,0.24,0.26 -o compiled/mine
    """
    from sphynx.data.source import save_source
    from sphynx.network.model import trained_on
    from sphynx.program.cost.cost import layer_costs
    from sphynx.program.folder import save_compiled
    from sphynx.program.quantise import Precision
    from sphynx.space.shipped import PROGRAM, model_path

    precision = None if weight_bits is None else Precision(weight_bits, activation_bits, link_bits)
    if Path(run).suffix.lower() == ".onnx":
        if derivable:
            raise InputError(
                "weights are derived of models, not of ONNX files", where="--derivable", remedy="Leave it out."
            )
        known, compiles = None, _read_onnx(Path(run), mean, std, precision)
    elif mean or std:
        raise InputError(
            "a trained run has its own", where="--mean, --std", remedy="Leave them out: they are for ONNX networks."
        )
    else:
        if derivable and out.resolve().parent != model_path(run).resolve():
            raise InputError(
                "weights are derived from the model beside the program, which would be another one",
                where="--derivable", remedy=f"Compile the packed model: -o {model_path(run) / PROGRAM}.",
            )  # fmt: skip
        known, compiles = trained_on(model_path(run)), _read_trained(run, precision)
    data = open_known(calibrate, image_size, stream, known, where=run, flag="--calibrate")
    compiled = compiles(data)
    save_compiled(out, compiled, derivable=derivable)
    if not derivable:  # a model's card says which data it knows
        save_source(out, data.source)
    program = compiled.program
    linears = list(program.linears)
    if as_json:
        print_json(
            {
                "out": str(out),
                "content_hash": program.content_hash,
                "ring_bits": program.ring_bits,
                "weight_bits": program.weight_bits,
                "logit_error": compiled.logit_error,
                "relus": program.relu_count,
                "comparisons": program.comparison_count,
                "layers": {
                    step.name: step.range_bits for step in program.affines if step.range_bits or step in linears
                },
                "chains": [step.name for step in linears if step.name in program.links and not step.range_bits],
                "border_terms": {
                    step.name: sum(program.is_crop(term.source) for term in step.terms) for step in linears
                },
            }
        )
        return
    costs = dict(layer_costs(program))
    print_table(
        f"Compiled: {out}",
        ["linear map", "shape", "convolutions", ">MACs", ">HE products", ">scale", ">range bits"],
        (
            [
                step.name,
                str(step.shape),
                _convolutions(program, step),
                short(costs[step.name].macs),
                count(costs[step.name].he_products),
                str(step.scale),
                range_text(program, step.name, step.range_bits),
            ]
            for step in linears
        ),
        note=f"ring of {program.ring_bits} bits, weights of {program.weight_bits}, {nonlinear_text(program)}; "
        f"logits off by {compiled.logit_error:.2%} of their spread; hash {program.content_hash[:16]}",
    )


def _read_trained(run: str, precision: Precision | None) -> Compiles:
    from sphynx.network.build import as_designed
    from sphynx.network.fit import require_fit
    from sphynx.network.model import load_model, load_normalisation
    from sphynx.program.compile import calibration_images, compile_network
    from sphynx.program.frontend.torch_network import trace
    from sphynx.space.shipped import CARD, model_path

    path = model_path(run)
    name = path.resolve().name if (path / CARD).is_file() else ""  # a model's; a run is called as its design
    network, (mean, std) = as_designed(load_model(path)), load_normalisation(path)
    trace(network, mean, std, outline=True)

    def compiles(data: Data | StreamedData) -> Quantised:
        require_fit(network.design, data, trained=True)
        return compile_network(
            network, mean, std, calibration_images(data.train), precision,
            class_names=data.train.class_names, name=name, picture_part=data.picture_part,
        )  # fmt: skip

    return compiles


def _read_onnx(path: Path, mean: str, std: str, precision: Precision | None) -> Compiles:
    from sphynx.program.compile import calibration_images, compile_walk
    from sphynx.program.frontend.onnx.network import read_network

    network = read_network(path)
    channels = network.image.channels
    means, deviations = _per_channel(mean or "0", channels, "--mean"), _per_channel(std or "1", channels, "--std")
    if min(deviations) <= 0:
        raise InputError("a deviation is not positive", where="--std", remedy="Give what the network was trained with.")
    network.trace(means, deviations, outline=True)

    def compiles(data: Data | StreamedData) -> Quantised:
        return compile_walk(
            network.trace, means, deviations, calibration_images(data.train), precision,
            class_names=data.train.class_names, name=network.name, picture_part=data.picture_part, final=network.final,
        )  # fmt: skip

    return compiles


def _per_channel(text: str, channels: int, flag: str) -> tuple[float, ...]:
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if len(values) not in (1, channels) or not all(map(isfinite, values)):
        raise InputError(
            f"{text} is not a number for each of {channels} channels",
            where=flag,
            remedy="Give one number, or one per channel with commas between them: 0.5,0.5,0.5.",
        )
    return values if len(values) == channels else values * channels


def _convolutions(program: Program, step: Linear) -> str:
    """The terms that read whole tensors, and how many read single rows, columns or corners of a border."""
    borders = sum(program.is_crop(term.source) for term in step.terms)
    shown = [
        f"{term.kernel_height}x{term.kernel_width}"
        + (f"/{term.stride}" if term.stride > 1 else "")
        + (f" dilated {term.dilation}" if term.dilation > 1 else "")
        + f" of {term.source}"
        for term in step.terms
        if not program.is_crop(term.source)
    ]
    return ", ".join([*shown, *([f"{borders} for borders"] if borders else [])])
