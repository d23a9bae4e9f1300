"""Print a program for `sphynx compile`: its linear maps in a table of at most 100 columns, blocks that repeat shown
once, and what one private inference would cost. As JSON every map is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sphynx.cli.output import count, nonlinear_text, print_table, range_text
from sphynx.units import seconds_text, short_number

if TYPE_CHECKING:
    from sphynx.program.cost.deployment import Deployment
    from sphynx.program.cost.estimate import Estimate
    from sphynx.program.cost.rates import Rates
    from sphynx.program.ir import Linear, Program

WIDTH = 100
LONGEST_BLOCK = 12  # maps that repeat together


@dataclass(frozen=True)
class Row:
    name: str
    shape: str
    kernels: str
    macs: int
    he_products: int
    bits: str

    def is_like(self, other: Row) -> bool:
        """Compare with another row, but for name and bits, which differ from one block to the next."""
        return (self.shape, self.kernels, self.he_products) == (other.shape, other.kernels, other.he_products)


@dataclass(frozen=True)
class Shown:
    row: Row  # the first of those that are alike
    times: int
    bits: str  # of all of them


def fold(rows: Sequence[Row]) -> list[Shown]:
    """Blocks of maps that follow one another and are alike, map by map, are shown once, with how often they occur."""
    found: list[Shown] = []
    at = 0
    while at < len(rows):
        length, times = max(
            ((size, _times(rows, at, size)) for size in range(1, LONGEST_BLOCK + 1)),
            key=lambda block: block[0] * (block[1] - 1),
        )
        for number in range(at, at + length):
            alike = rows[number : at + length * times : length]
            found.append(Shown(rows[number], times, _bits([row.bits for row in alike])))
        at += length * times
    return found


def _times(rows: Sequence[Row], at: int, size: int) -> int:
    """How often the block of that many maps stands there, one behind the other."""
    block, times = rows[at : at + size], 1
    while True:
        other = rows[at + times * size : at + (times + 1) * size]
        if len(other) < size or not all(one.is_like(two) for one, two in zip(block, other, strict=True)):
            return times
        times += 1


def _bits(texts: list[str]) -> str:
    """21-23, and words for maps without a range."""
    numbers = sorted(int(text) for text in texts if text.isdigit())
    words = dict.fromkeys(text for text in texts if not text.isdigit())
    ends = dict.fromkeys(map(str, numbers[:1] + numbers[-1:]))
    return ", ".join([*words, *(["-".join(ends)] if ends else [])])


def print_program(program: Program, title: str, notes: Sequence[str]) -> None:
    from sphynx.program.naming import short_hash

    rows = _rows(program)
    found = fold(rows)
    repeats = any(shown.times > 1 for shown in found)
    columns = ["linear map", "shape", "convolutions", *([">times"] if repeats else []), ">HE products", ">range bits"]
    print_table(
        title,
        columns,
        (
            [
                shown.row.name.removesuffix(".input").removesuffix(".activation"),
                shown.row.shape,
                shown.row.kernels,
                *([str(shown.times)] if repeats else []),
                count(shown.row.he_products),
                shown.bits,
            ]
            for shown in found
        ),
        note="\n".join(
            [
                f"{len(rows)} linear maps, {count(sum(row.he_products for row in rows))} HE products, "
                f"{short_number(sum(row.macs for row in rows))} MACs; ring of {program.ring_bits} bits, weights of "
                f"{program.weight_bits}; hash {short_hash(program.content_hash)}",
                *notes,
                *_legend(found),
            ]
        ),
        width=WIDTH,
    )


def _legend(found: Sequence[Shown]) -> list[str]:
    """Say what the words of the table mean that occur in it."""
    bits = ", ".join(shown.bits for shown in found)
    words = ["HE product: an encrypted vector times a vector of weights, computed before there is a picture"]
    if "chain" in bits:
        words.append("chain: a map that only other maps read, so nothing is rounded after it")
    if "sum" in bits:
        words.append("sum: a part of a sum; the sum is rounded as a whole")
    return words


def cost_line(program: Program, deployment: Deployment) -> str:
    """On a machine that nobody measured yet, the times are another one's."""
    found, rates, is_ours = _estimate(program, deployment)
    total = found.total
    line = (
        f"one private inference: {nonlinear_text(program)}; about {seconds_text(total.online_seconds)} online and "
        f"{seconds_text(total.offline_seconds)} offline over {deployment.link.name} "
        f"(ReLUs using {found.backend.upper()}, {rates.machine})"
    )
    return line if is_ours else f"{line}; sphynx estimate measures this machine"


def program_json(program: Program, deployment: Deployment) -> dict[str, Any]:
    """The whole of it: every map, and the cost."""
    found, rates, _ = _estimate(program, deployment)
    linears = list(program.linears)
    total = found.total
    return {
        "content_hash": program.content_hash,
        "ring_bits": program.ring_bits,
        "weight_bits": program.weight_bits,
        "relus": program.relu_count,
        "comparisons": program.comparison_count,
        "layers": {step.name: step.range_bits for step in program.affines if step.range_bits or step in linears},
        "chains": [step.name for step in linears if step.name in program.links and not step.range_bits],
        "border_terms": {step.name: sum(program.is_crop(term.source) for term in step.terms) for step in linears},
        "maps": [
            {
                "name": row.name,
                "shape": list(step.shape),
                "macs": row.macs,
                "he_products": row.he_products,
                "scale": step.scale,
                "range_bits": step.range_bits,
                "reads": [
                    {
                        "source": term.source,
                        "kernel": [term.kernel_height, term.kernel_width],
                        "stride": term.stride,
                        "dilation": term.dilation,
                    }
                    for term in step.terms
                ],
            }
            for row, step in zip(_rows(program), linears, strict=True)
        ],
        "estimate": {
            "link": deployment.link.name,
            "machine": rates.machine,
            "backend": found.backend,
            **{
                name: getattr(total, name)
                for name in ("offline_seconds", "online_seconds", "offline_bytes", "online_bytes")
            },
        },
    }


def _estimate(program: Program, deployment: Deployment) -> tuple[Estimate, Rates, bool]:
    """Estimate the cost; return also the rates, and whether they are this machine's."""
    from sphynx.program.cost.estimate import estimate
    from sphynx.program.cost.kept_rates import kept_rates
    from sphynx.program.cost.rates import REFERENCE
    from sphynx.protocol.planned_he import planned_he

    kept = kept_rates()
    rates = kept or REFERENCE
    found = estimate(program, rates, deployment.link, deployment.backend, planned=planned_he(program))
    return found, rates, kept is not None


def _rows(program: Program) -> list[Row]:
    from sphynx.program.cost.cost import layer_costs

    costs = dict(layer_costs(program))
    return [
        Row(
            step.name,
            str(step.shape),
            _kernels(program, step),
            costs[step.name].macs,
            costs[step.name].he_products,
            range_text(program, step.name, step.range_bits),
        )
        for step in program.linears
    ]


def _kernels(program: Program, step: Linear) -> str:
    """List kernels of whole tensors, alike ones together, and count those of single rows, columns or corners."""
    borders = sum(program.is_crop(term.source) for term in step.terms)
    kinds = Counter(
        f"{term.kernel_height}x{term.kernel_width}"
        + (f"/{term.stride}" if term.stride > 1 else "")
        + (f" dilated {term.dilation}" if term.dilation > 1 else "")
        + (f" in {term.groups} groups" if term.groups > 1 else "")
        for term in step.terms
        if not program.is_crop(term.source)
    )
    shown = [kind if times == 1 else f"{times} of {kind}" for kind, times in kinds.items()]
    return ", ".join([*shown, *([f"{borders} for borders"] if borders else [])])
