"""Bring the weights of models that a clone does not hold, by name, and check every file's hash.

`models/weights.sha256` lists all weights of all models, as sha256sum(1) does:

    HASH  NAME/model.safetensors

A release has these files under the same paths below one address. `python -m tools.fetch_weights --list` writes the list
again, after a model was packed.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path
from typing import Annotated
from urllib.parse import quote
from urllib.request import urlopen

import typer

from sphynx.errors import InputError
from tools.command import run

ROOT = Path(__file__).parents[1]
MODELS, LIST = ROOT / "models" / "src" / "sphynx_models", ROOT / "models" / "weights.sha256"
WEIGHTS = "model.safetensors"
MOST_BYTES = 1 << 30
_LINE = re.compile(r"([0-9a-f]{64})  ([a-z0-9][a-z0-9.-]*)/model\.safetensors")
_PIECE_BYTES = 1 << 20


def fetch_weights(
    source: Annotated[str, typer.Argument(help="A folder, or an https address, that has NAME/model.safetensors.")] = "",
    names: Annotated[list[str] | None, typer.Argument(help="Models; all that are missing unless given.")] = None,
    make_list: Annotated[bool, typer.Option("--list", help="Write the list of hashes of what is here.")] = False,
) -> None:
    """Fetch the weights that are missing here, and check them against models/weights.sha256.

    Examples:

      python -m tools.fetch_weights https://example.org/sphynx/models stream-cifar100-102k

      python -m tools.fetch_weights --list
    """
    if make_list:
        LIST.write_text(list_weights(MODELS))
        return
    for name in fetch(source, names or [], MODELS, LIST):
        typer.echo(name)


def list_weights(models: Path) -> str:
    files = sorted(models.glob(f"*/{WEIGHTS}"))
    return "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.parent.name}/{WEIGHTS}\n" for file in files)


def read_list(file: Path) -> dict[str, str]:
    """Read the hash of every model's weights."""
    found = {}
    for line in file.read_text().splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            raise InputError(f"{line!r} is not a hash and a model's file", where=str(file), remedy="Restore the file.")
        found[match[2]] = match[1]
    return found


def fetch(source: str, names: list[str], models: Path, listed: Path) -> list[str]:
    """Fetch what is missing of the names, of all models if there are none; return whose weights came."""
    hashes = read_list(listed)
    for name in names:
        if name not in hashes:
            raise InputError("it is not in the list of weights", where=name, remedy=f"One of {', '.join(hashes)}.")
    missing = [name for name in names or hashes if not (models / name / WEIGHTS).exists()]
    for name in missing:
        _fetch_one(f"{source.rstrip('/')}/{quote(name)}/{WEIGHTS}", models / name / WEIGHTS, hashes[name])
    return missing


def _fetch_one(address: str, out: Path, expected: str) -> None:
    """Write the file under another name, and rename it once its hash is right."""
    out.parent.mkdir(parents=True, exist_ok=True)
    digest, taken = hashlib.sha256(), 0
    with tempfile.NamedTemporaryFile(dir=out.parent, prefix=".new-", delete=False) as file:
        fresh = Path(file.name)
        try:
            remote = address.startswith(("https://", "http://127.0.0.1"))
            with urlopen(address, timeout=60) if remote else Path(address).open("rb") as given:
                while piece := given.read(_PIECE_BYTES):
                    taken += len(piece)
                    if taken > MOST_BYTES:
                        raise InputError(f"it is longer than {MOST_BYTES >> 20} MiB", where=address, remedy="Check it.")
                    digest.update(piece)
                    file.write(piece)
            file.flush()
            os.fsync(file.fileno())
            if digest.hexdigest() != expected:
                raise InputError(
                    f"its hash is {digest.hexdigest()}, not {expected}",
                    where=address,
                    remedy="Fetch it from the release that this clone belongs to.",
                )
            fresh.chmod(0o644)
            fresh.replace(out)
        except OSError as error:
            raise InputError(f"it cannot be read ({error})", where=address, remedy="Check the address.") from None
        finally:
            fresh.unlink(missing_ok=True)


if __name__ == "__main__":
    run(fetch_weights)
