"""Small data sets written in the layouts of the real ones."""

import gzip
import pickle
import struct
import tarfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.uint8]


def pixels(n: int, shape: tuple[int, ...], seed: int = 0) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, (n, *shape)).astype(np.uint8)


def write_cifar(folder: Path, kind: str) -> dict[str, Pixels]:
    """The members of cifar-10-batches-py or cifar-100-python, pickled as Python 2 did: byte-string keys."""
    folder.mkdir(parents=True, exist_ok=True)
    ten = kind == "cifar10"
    train = [f"data_batch_{n}" for n in range(1, 6)] if ten else ["train"]
    names = [b"cat", b"dog", b"owl"]
    written = {}
    for number, name in enumerate([*train, "test_batch" if ten else "test"]):
        data = pixels(6, (3072,), number)
        labels = [0, 1, 2, 0, 1, 2]
        table: dict[bytes, object] = {b"data": data, b"labels" if ten else b"fine_labels": labels}
        if not ten:
            table[b"coarse_labels"] = [0] * 6
        (folder / name).write_bytes(pickle.dumps(table, protocol=2))
        written[name] = data.reshape(-1, 3, 32, 32)
    meta = {b"label_names": names} if ten else {b"fine_label_names": names, b"coarse_label_names": [b"animal"]}
    (folder / ("batches.meta" if ten else "meta")).write_bytes(pickle.dumps(meta, protocol=2))
    return written


def tar_up(folder: Path, archive: Path) -> Path:
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, arcname=folder.name)
    return archive


def write_image(path: Path, array: Pixels) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)
    return path


def write_classes(folder: Path, classes: tuple[str, ...] = ("ant", "bee"), n: int = 5, size: int = 6) -> None:
    for number, name in enumerate(classes):
        for index, array in enumerate(pixels(n, (size, size, 3), number)):
            write_image(folder / name / f"{index}.png", array)


def write_tiny_imagenet(folder: Path, classes: tuple[str, ...] = ("n01", "n02")) -> None:
    folder.mkdir(parents=True)
    (folder / "wnids.txt").write_text("\n".join(reversed(classes)) + "\n")
    annotations = []
    for number, name in enumerate(classes):
        for index, array in enumerate(pixels(3, (8, 8, 3), number)):
            write_image(folder / "train" / name / "images" / f"{name}_{index}.JPEG", array)
        file = f"val_{number}.JPEG"
        write_image(folder / "val" / "images" / file, pixels(1, (8, 8), number)[0])  # some are grey in the original
        annotations.append(f"{file}\t{name}\t0\t0\t7\t7")
    (folder / "val" / "val_annotations.txt").write_text("\n".join(annotations) + "\n")
    write_image(folder / "test" / "images" / "test_0.JPEG", pixels(1, (8, 8, 3))[0])


def write_idx(path: Path, array: Pixels) -> None:
    content = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def write_fashion(folder: Path, suffix: str = ".gz") -> dict[str, Pixels]:
    written = {}
    for number, (split, n) in enumerate((("train", 8), ("t10k", 4))):
        written[split] = pixels(n, (28, 28), number)
        write_idx(folder / f"{split}-images-idx3-ubyte{suffix}", written[split])
        write_idx(folder / f"{split}-labels-idx1-ubyte{suffix}", (np.arange(n) % 4).astype(np.uint8))
    return written


def write_packed(folder: Path, source: Path, split: str, part: int = 0) -> Path:
    """One part, in the packed format: encoded files end to end."""
    blobs, labels = [], []
    for label, name in enumerate(sorted(p.name for p in source.iterdir())):
        for path in sorted((source / name).iterdir()):
            blobs.append(path.read_bytes())
            labels.append(label)
    folder.mkdir(parents=True, exist_ok=True)
    offsets = np.cumsum([0, *map(len, blobs)]).astype(np.int64)
    file = folder / f"{split}{part}.npz"
    blob = np.frombuffer(b"".join(blobs), np.uint8)
    np.savez(file, blob=blob, off=offsets, y=np.array(labels, np.int32), split=split)
    return file
