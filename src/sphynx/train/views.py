"""A teacher's logits of augmented images (views), computed once and used by every student that is trained on them.

A recipe with `view_epochs` = n sees the views of n epochs again and again: same images in the same batches, same crops,
strokes and mixes, drawn from a seed that is not the student's. The teacher's logits of all of them are computed before
training, in half precision, 2 bytes per class and image (for CIFAR-100, 10 MB an epoch), and stay on the device; then
no step runs the teacher. The file holds them for later students:

    views.safetensors    logits float16 [epochs, batches, images, classes]; its metadata say of which views and teacher
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from sphynx.data.batches import Batches
from sphynx.data.streamed import StreamedBatches
from sphynx.errors import InputError
from sphynx.network.ensemble import Teacher
from sphynx.network.layout import lay_out
from sphynx.record import fingerprint
from sphynx.run.progress import Progress, Voice
from sphynx.train.recipe import Recipe

VIEWS, FORMAT = "views.safetensors", "sphynx-views/1"
VIEW_SEED = 0
_LOGITS = "logits"


@dataclass(frozen=True, eq=False)
class Views:
    logits: Tensor
    teacher: dict[str, Any]  # its design
    weights: str  # which of that design it is: their digest

    def of(self, epoch: int, batch: int) -> Tensor:
        return self.logits[epoch % len(self.logits), batch]


def views_identity(data: dict[str, object], recipe: Recipe) -> str:
    """Everything that the views depend on."""
    keys = ("batch_size", "crop", "flip", "cutout", "mixup", "cutmix", "trivial_augment", "held_out", "view_epochs")
    described = recipe.to_json()
    # Named where they are used, so that views from before there were such keep their identity.
    used = {key: described[key] for key in ("rotate", "scale", "contrast", "brightness") if described[key]}
    if recipe.balance == "sampling":
        used["balance"] = recipe.balance
    return fingerprint(FORMAT, VIEW_SEED, data, [described[key] for key in keys], *([used] if used else []))


def make_views(
    teacher: Teacher,
    batches: Batches | StreamedBatches,
    epochs: int,
    *,
    half: bool,
    channels_last: bool,
    voice: Voice,
) -> Views:
    """`batches` are at the start of their first epoch, and have a period of at least `epochs`."""
    device = batches.device
    teacher = teacher.to(device).eval().requires_grad_(False)
    layout = torch.channels_last if channels_last else torch.contiguous_format
    lay_out(teacher, layout)
    kept: list[Tensor] = []
    with (
        torch.no_grad(),
        torch.autocast(device.type, torch.bfloat16, enabled=half),
        Progress("views", total=epochs * len(batches), columns=("epoch", "batches"), voice=voice) as progress,
    ):
        for epoch in range(epochs):
            found = []
            for x, _ in batches:
                found.append(teacher(x.contiguous(memory_format=layout)).to(torch.float16))
                progress.advance()
            kept.append(torch.stack(found))
            progress.row(epoch=epoch + 1, batches=len(found))
    return Views(torch.stack(kept), teacher.design.to_json(), weights_digest(teacher))


def save_views(path: Path, views: Views, belongs_to: str, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {
        "format": FORMAT,
        "views": belongs_to,
        "content": content,
        "weights": views.weights,
        "teacher": json.dumps(views.teacher),
    }
    temporary = path.with_name(path.name + ".new")
    save_file({_LOGITS: views.logits.cpu().contiguous()}, temporary, about)
    temporary.replace(path)


def load_views(path: Path, belongs_to: str, content: str, teacher: Teacher | None, device: torch.device) -> Views:
    """Refuses those of other images or another recipe, and, where the teacher is given, those of another one."""
    try:
        with safe_open(path, framework="pt") as opened:
            about = opened.metadata() or {}
            logits = opened.get_tensor(_LOGITS)
            described = json.loads(about.get("teacher", "{}"))
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"the views cannot be read ({error})", where=str(path), remedy=_REMEDY) from error
    same = about.get("views") == belongs_to and about.get("content", content) == content  # older ones lack the latter
    if about.get("format") != FORMAT or not same:
        raise InputError(
            "the views were made from other images, or with other augmentation, batch size or `view_epochs`",
            where=str(path),
            remedy=_REMEDY,
        )
    if teacher is not None and about.get("weights") != weights_digest(teacher):
        raise InputError("the views were made by another teacher", where=str(path), remedy=_REMEDY)
    return Views(logits.to(device), described, about.get("weights", ""))


_REMEDY = "Give another file as `views`, which is then created, or use the settings of this one."


def weights_digest(network: nn.Module) -> str:
    """Which weights a network has."""
    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
