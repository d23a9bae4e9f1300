"""Images whose labels number the classes as a network does: by the names of the classes, where both sides have any.

Names are unknown where a format has only numbers (idx files, packed parts), or where one side has words and the other
WordNet numbers (Tiny-ImageNet without words.txt). The numbers then count as they are.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TypeVar

import torch

from sphynx.data.images import ImageSet
from sphynx.data.streamed import StreamedSet
from sphynx.errors import InputError

_WORDNET = re.compile(r"n\d{8}")

Images = TypeVar("Images", bound=ImageSet | StreamedSet)


def ordered_as(images: Images, known: tuple[str, ...], *, where: str = "data") -> Images:
    """Numbered in the order of the `known` names, which are the network's. Other names are refused."""
    numbers = numbers_among(images.class_names, known, where=where)
    if numbers is None:
        return images
    number = torch.tensor(numbers, device=images.labels.device)
    return replace(images, labels=number[images.labels], class_names=known)


def numbers_among(
    given: tuple[str, ...], known: tuple[str, ...], *, where: str = "data", knower: str = "network"
) -> tuple[int, ...] | None:
    """The number that each of the `given` classes has among the `known` ones, which are the `knower`'s; None where the
    numbers count as they are."""
    if given == known or len(given) != len(known):  # how many there are is others' business
        return None
    if set(given) == set(known):
        return tuple(map(known.index, given))
    if not (_is_unknown(given) or _is_unknown(known) or _are_wordnet(given) != _are_wordnet(known)):
        _refuse(given, known, where, knower)
    return None


def _is_unknown(names: tuple[str, ...]) -> bool:
    return names == tuple(map(str, range(len(names))))


def _are_wordnet(names: tuple[str, ...]) -> bool:
    return all(map(_WORDNET.fullmatch, names))


def _refuse(given: tuple[str, ...], known: tuple[str, ...], where: str, knower: str) -> None:
    number = next(number for number, pair in enumerate(zip(given, known, strict=True)) if pair[0] != pair[1])
    strange = [name for name in given if name not in known]
    raise InputError(
        f"its classes are not the {knower}'s: class {number} is {given[number]!r} here and {known[number]!r} in the "
        f"{knower}, which does not know {_list(strange)}",
        where=where,
        remedy="Give data of the same classes; if a class folder only has a different name, rename it.",
    )


def _list(names: list[str]) -> str:
    return ", ".join(map(repr, names[:3])) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
