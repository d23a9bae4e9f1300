"""Trains some of the zoo's networks on CIFAR-100 at 64x64: weights for `zoo.py --weights`.

    python -m benchmarks.zoo_train DATA OUT [--seconds 500] [--networks resnet18,squeezenet1_1]

DATA holds packed parts (train0.npz, ..., test0.npz), as `sphynx.data.packed` describes them. Each network becomes
OUT/NAME.safetensors, in parts NAME-0.safetensors, ... where it is larger than 15 MiB: matrices in half precision, all
else in single. OUT/trained.json gives the test accuracy of each, with these weights. All of it takes at most `seconds`:
each network's learning rate runs through its one cycle in that network's share of the time, or in `epochs` if sooner.
Needs torch, numpy, Pillow, safetensors and torchvision, not Sphynx; a GPU unless `batches` is small.
"""

from __future__ import annotations

import argparse
import io
import json
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.zoo_torchvision import CIFAR_CLASSES, MEAN, STD, untrained
from sphynx.network.layout import lay_out

# Largest learning rates of AdamW. SqueezeNet has no batch norms, which would let it learn faster.
NETWORKS = {"resnet18": 2e-3, "mobilenet_v2": 3e-3, "regnet_x_400mf": 2e-3, "squeezenet1_1": 6e-4}
SIZE = 64
BATCH = 512
CROP = 8  # pixels that a picture moves, at most
WARM_UP = 0.2  # of a network's time
PART_BYTES = 15 << 20
_SEED = 0


def read(folder: Path, split: str, limit: int | None) -> tuple[Tensor, Tensor]:
    """uint8 [n, 3, SIZE, SIZE] and class numbers; enlarged as `sphynx ... --image-size` does it."""
    encoded: list[bytes] = []
    labels: list[int] = []
    for path in sorted(folder.glob(f"{split}*.npz")):
        with np.load(path, allow_pickle=False) as part:
            content = part["blob"].tobytes()
            encoded += [content[start:end] for start, end in pairwise(part["off"].tolist())]
            labels += part["y"].tolist()
    if not encoded:
        raise SystemExit(f"{folder} holds no {split}*.npz")
    chosen = np.random.default_rng(_SEED).permutation(len(encoded))[:limit]
    with ThreadPoolExecutor() as threads:
        pictures = list(threads.map(lambda index: _pixels(encoded[index]), chosen))
    return torch.from_numpy(np.stack(pictures)), torch.tensor(labels)[torch.from_numpy(chosen)]


def _pixels(encoded: bytes) -> np.ndarray:
    picture = Image.open(io.BytesIO(encoded)).convert("RGB").resize((SIZE, SIZE), Image.Resampling.BILINEAR)
    return np.asarray(picture).transpose(2, 0, 1)


def normalised(images: Tensor) -> Tensor:
    scaled = (images.float() / 255 - MEAN) / STD
    return scaled.to(memory_format=torch.channels_last)


def augmented(images: Tensor) -> Tensor:
    """Each picture flipped or not, and moved by up to CROP pixels; its edges repeat."""
    flipped = torch.rand(len(images), device=images.device) < 0.5
    images = torch.where(flipped[:, None, None, None], images.flip(3), images)
    padded = functional.pad(images.half(), (CROP,) * 4, mode="replicate").to(torch.uint8)
    rows, columns = (torch.randint(2 * CROP + 1, (len(images), 1), device=images.device) for _ in range(2))
    along = torch.arange(SIZE, device=images.device)
    each = torch.arange(len(images), device=images.device)[:, None, None]
    moved = padded.permute(0, 2, 3, 1)[each, (rows + along)[:, :, None], (columns + along)[:, None, :]]
    return moved.permute(0, 3, 1, 2)


def one_cycle(progress: float) -> float:
    """Part of the largest learning rate, up and then down to nothing, both along lines."""
    return min(progress / WARM_UP, (1 - progress) / (1 - WARM_UP))


def train(name: str, images: Tensor, labels: Tensor, seconds: float, epochs: int) -> tuple[nn.Module, float]:
    """The network, and how many epochs it saw."""
    torch.manual_seed(_SEED)
    module = untrained(name, CIFAR_CLASSES)
    lay_out(module.to(images.device), torch.channels_last)
    matrices = [weight for weight in module.parameters() if weight.dim() > 1]
    others = [weight for weight in module.parameters() if weight.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups)
    batch = min(BATCH, len(images))
    per_epoch = len(images) // batch
    started, steps = time.monotonic(), 0
    order = torch.randperm(len(images), device=images.device)
    while (progress := max((time.monotonic() - started) / seconds, steps / (epochs * per_epoch))) < 1:
        if steps % per_epoch == 0:
            order = torch.randperm(len(images), device=images.device)
        picked = order[steps % per_epoch * batch :][:batch]
        for group in optimiser.param_groups:
            group["lr"] = NETWORKS[name] * one_cycle(progress)
        with torch.autocast(images.device.type, torch.bfloat16):
            logits = module(normalised(augmented(images[picked])))
        loss = functional.cross_entropy(logits.float(), labels[picked], label_smoothing=0.1)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimiser.step()
        steps += 1
        if steps % 100 == 0:  # reading the loss also keeps the queue of the GPU short, so that time is what it seems
            print(f"{name}: {progress:4.0%}, epoch {steps / per_epoch:.1f}, loss {loss.item():.3f}", flush=True)
    return module.eval(), steps / per_epoch


def accuracy(module: nn.Module, images: Tensor, labels: Tensor) -> float:
    with torch.no_grad():
        right = [
            (module(normalised(part)).argmax(1) == wanted).sum()
            for part, wanted in zip(images.split(BATCH), labels.split(BATCH), strict=True)
        ]
    return float(torch.stack(right).sum()) / len(images)


def rounded(module: nn.Module) -> dict[str, Tensor]:
    """Round the weights as they are written, and load them back for measuring; counters of batches are left out."""
    state = {name: tensor.detach() for name, tensor in module.state_dict().items() if tensor.is_floating_point()}
    kept = {name: tensor.half() if tensor.dim() > 1 else tensor.float() for name, tensor in state.items()}
    module.load_state_dict({name: tensor.float() for name, tensor in kept.items()}, strict=False)
    return {name: tensor.cpu().contiguous() for name, tensor in kept.items()}


def write(state: dict[str, Tensor], folder: Path, name: str) -> list[str]:
    parts: list[dict[str, Tensor]] = [{}]
    size = 0
    for key, tensor in state.items():
        if size + tensor.nbytes > PART_BYTES and parts[-1]:
            parts.append({})
            size = 0
        parts[-1][key] = tensor
        size += tensor.nbytes
    files = [f"{name}.safetensors"] if len(parts) == 1 else [f"{name}-{i}.safetensors" for i in range(len(parts))]
    for file, part in zip(files, parts, strict=True):
        save_file(part, folder / file)
    return files


def main() -> None:
    began = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--seconds", type=float, default=500.0, help="for all of it")
    parser.add_argument("--epochs", type=int, default=30, help="of each network, at most")
    parser.add_argument("--images", type=int, default=None, help="of each split, to try this file out")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    images, labels = (part.to(device) for part in read(options.data, "train", options.images))
    asked, wanted = (part.to(device) for part in read(options.data, "test", options.images))
    print(f"{len(images)} and {len(asked)} pictures after {time.monotonic() - began:.0f} s", flush=True)
    names = options.networks.split(",")
    told = options.out / "trained.json"
    results = json.loads(told.read_text()) if told.exists() else {}  # of networks that were trained before
    for number, name in enumerate(names):
        left = options.seconds - (time.monotonic() - began)
        share = max(1.0, 0.93 * left / (len(names) - number))  # the rest is for accuracies and files
        module, epochs = train(name, images, labels, share, options.epochs)
        files = write(rounded(module), options.out, name)
        found = accuracy(module, asked, wanted)
        results[name] = {"accuracy": found, "images": len(asked), "epochs": epochs, "data": "CIFAR-100", "files": files}
        told.write_text(json.dumps(results, indent=1) + "\n")
        print(f"{name}: accuracy {found:.4f} after {epochs:.1f} epochs, {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
