"""Pack what goes from one machine to the next: all results, which are small, and the checkpoints of what is unfinished.

results.tgz      every run's JSON files, metrics, figures, logs and answers
state.NN         parts of one tar with checkpoints and weights, the most important first, up to a limit

A training's checkpoint is kept exactly (deflated: widths are padded with zeros). A search's is too large for that
(182 MB for C=16): its architecture, Adam and rows are kept exactly, kernels in 8 bits per output channel, momentum not
at all. Such a search goes on from weights that are off by at most 0.4 % of a channel's largest one.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from reproduction.compact import compact_bytes

RESULTS = "results.tgz"
PART = 15 << 20  # bytes
SMALL = {".json", ".jsonl", ".svg", ".log", ".txt", ".npz"}
LEAST_COMPACT = 10  # times smaller than in full precision no weights get
WEIGHTS = ("model", "compact")
KERNEL = 4  # dimensions of a kernel; reductions that are stacked have five


def pack_results(runs: Path, out: Path, folders: Collection[str] | None = None) -> None:
    """`folders`: those to pack; what is unfinished goes on elsewhere only with its checkpoint."""
    out.mkdir(parents=True, exist_ok=True)
    new = out / "results.new"
    with tarfile.open(new, "w:gz", compresslevel=6) as tar:
        for path in sorted(runs.rglob("*")):
            name = path.relative_to(runs)
            if path.is_file() and path.suffix in SMALL and (folders is None or name.parts[0] in folders):
                content = path.read_bytes()  # at once: runs that go on replace their files
                info = tarfile.TarInfo(str(name))
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    new.replace(out / RESULTS)


def pack_state(runs: Path, out: Path, unfinished: list[tuple[str, str]], limit: int) -> list[str]:
    """`unfinished`: (folder, kind), by priority; "train", "search" or "place" for its checkpoint, "model" for its
    weights, "compact" for these in eight bits. Says what it kept and left out."""
    said, total, buffer = [], 0, io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for folder, kind in unfinished:
            path = runs / folder / ("model.safetensors" if kind in WEIGHTS else "checkpoint.pt")
            if not path.is_file():
                continue
            if kind == "compact" and total + path.stat().st_size // LEAST_COMPACT > limit:
                said.append(f"left out {folder}/{path.name}: too little is left of the limit")
                continue
            data = _pack(path, kind)
            if total + len(data) > limit:
                said.append(
                    f"left out {folder}/{path.name}: {len(data) / 2**20:.1f} MiB are more than the limit allows"
                )
                continue
            total += len(data)
            info = tarfile.TarInfo(f"{folder}/{path.name}.{'small' if kind == 'search' else 'z'}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
            said.append(f"kept {info.name}: {len(data) / 2**20:.1f} MiB")
    for old in out.glob("state.[0-9]*"):
        old.unlink()
    content = buffer.getvalue()
    for number in range(-(-len(content) // PART) if total else 0):
        (out / f"state.{number:02d}").write_bytes(content[number * PART : (number + 1) * PART])
    return said


def unpack(state: Path, runs: Path) -> list[str]:
    """Whatever of both lies in `state`; what is already unpacked there stays."""
    said = []
    results = state / RESULTS
    if results.is_file():
        with tarfile.open(results) as tar:
            for member in tar.getmembers():
                target, opened = (runs / member.name).resolve(), tar.extractfile(member)
                if opened is not None and target.is_relative_to(runs.resolve()) and not target.exists():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(opened.read())  # extract(filter="data") is not in Python 3.11.2, Debian 12's
        said.append("unpacked results.tgz")
    parts = sorted(state.glob("state.[0-9]*"))
    if parts:
        with tarfile.open(fileobj=io.BytesIO(b"".join(part.read_bytes() for part in parts))) as tar:
            for member in tar.getmembers():
                stem, _, form = member.name.rpartition(".")
                target = runs / stem
                opened = tar.extractfile(member)
                if target.exists() or opened is None:
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                data = zlib.decompress(opened.read())
                if form == "small":
                    torch.save(_full(torch.load(io.BytesIO(data), weights_only=True)), target)
                else:
                    target.write_bytes(data)
                said.append(f"unpacked {stem}")
    return said


@contextmanager
def unpacked(runs: Path) -> Iterator[Path]:
    """The run folders, where `runs` is what they were packed into: in a folder that is there for as long as needed."""
    if not (runs / RESULTS).is_file():
        yield runs
        return
    with tempfile.TemporaryDirectory() as folder:
        unpack(runs, Path(folder))
        yield Path(folder)


def _pack(path: Path, kind: str) -> bytes:
    if kind == "search":
        saved = torch.load(path, map_location="cpu", weights_only=True)
        small = io.BytesIO()
        torch.save(_small(saved), small)
        return zlib.compress(small.getvalue(), 1)
    if kind == "compact":
        return zlib.compress(compact_bytes(path.parent), 1)
    return zlib.compress(path.read_bytes(), 1)


def _small(saved: dict[str, Any]) -> dict[str, Any]:
    learner = saved["state"]["learner"]
    shared = learner["shared"]
    kept = {}
    for name, tensor in shared["network"].items():
        if tensor.ndim >= KERNEL and tensor.is_floating_point():
            scale = tensor.abs().amax(dim=(-3, -2, -1), keepdim=True).clamp_min(1e-12) / 127
            kept[name] = {"q": (tensor / scale).round().to(torch.int8), "s": scale}
        else:
            kept[name] = tensor
    optimiser = shared["optimiser"]
    momenta = {
        number: [list(entry["momentum_buffer"].shape), list(entry["momentum_buffer"].stride())]
        for number, entry in optimiser["state"].items()
    }
    small = {**shared, "network": kept, "optimiser": {**optimiser, "state": momenta}}
    return {**saved, "state": {**saved["state"], "learner": {**learner, "shared": small}}}


def _full(saved: dict[str, Any]) -> dict[str, Any]:
    """Momentum starts from zero again, in the layout that the fused kernel asks for."""
    shared = saved["state"]["learner"]["shared"]
    shared["network"] = {
        name: value["q"].float() * value["s"] if isinstance(value, dict) else value
        for name, value in shared["network"].items()
    }
    shared["optimiser"]["state"] = {
        number: {"momentum_buffer": torch.empty_strided(shape, stride).zero_()}
        for number, (shape, stride) in shared["optimiser"]["state"].items()
    }
    return saved
