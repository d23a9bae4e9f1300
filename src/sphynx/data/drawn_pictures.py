"""Pictures drawn here of things that networks for everyday objects know: an orange, a clock, a lamp. Needs Pillow.

The names are those of CIFAR-100's classes, and the shipped networks for CIFAR-100 recognise all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from PIL import Image, ImageDraw

SIDE = 128

Picture = Image.Image


def orange() -> Picture:
    y, x = np.mgrid[0:SIDE, 0:SIDE] / SIDE
    from_light = np.hypot(x - 0.36, y - 0.34)[..., None]
    shade = np.clip(1.12 - 0.9 * from_light**1.2, 0.35, 1.15)
    gloss = 120 * np.clip(1 - from_light / 0.1, 0, 1)
    is_inside = (np.hypot(x - 0.5, y - 0.52) < 0.36)[..., None]
    picture = _image(np.where(is_inside, np.array((240, 140, 20)) * shade + gloss, 255.0))
    ImageDraw.Draw(picture).ellipse((60, 26, 68, 32), fill=(90, 110, 30))
    return picture


def clock() -> Picture:
    picture, draw = _blank()
    draw.ellipse((8, 8, 120, 120), fill=(60, 50, 45))
    draw.ellipse((17, 17, 111, 111), fill=(248, 246, 238))
    for hour in range(12):
        draw.line((*_around(38, hour / 12), *_around(44, hour / 12)), fill=(20, 20, 20), width=4)
    draw.line((64, 64, 64, 32), fill=(15, 15, 15), width=4)
    draw.line((64, 64, 88, 74), fill=(15, 15, 15), width=5)
    return picture


def sunflower() -> Picture:
    picture, draw = _blank((70, 110, 50))
    for petal in range(24):
        turn = petal / 24
        inner = (_around(24, turn - 0.025), _around(24, turn + 0.025))
        sides = (_around(41, turn - 0.04), _around(41, turn + 0.04))
        shape = [inner[0], sides[0], _around(60, turn), sides[1], inner[1]]
        draw.polygon(shape, fill=(250, 190 + 25 * (petal % 2), 20))
    draw.ellipse((38, 38, 90, 90), fill=(85, 50, 20))
    draw.ellipse((50, 50, 78, 78), fill=(60, 35, 15))
    return picture


def skyscraper() -> Picture:
    y = np.mgrid[0:SIDE, 0:SIDE][0] / SIDE
    picture = _image(np.stack([90 + 90 * y, 140 + 70 * y, 215 + 20 * y], -1))
    draw = ImageDraw.Draw(picture)
    draw.rectangle((44, 8, 84, 128), fill=(70, 85, 110))
    draw.rectangle((70, 8, 84, 128), fill=(50, 62, 85))
    for top in range(12, 128, 7):
        for left in range(47, 82, 6):
            draw.rectangle((left, top, left + 3, top + 4), fill=(150, 175, 205) if left < 70 else (105, 125, 155))
    draw.rectangle((8, 70, 36, 128), fill=(95, 90, 95))
    draw.rectangle((92, 58, 124, 128), fill=(110, 100, 95))
    return picture


def pear() -> Picture:
    picture, draw = _blank()
    draw.line((64, 24, 70, 4), fill=(90, 60, 30), width=5)
    draw.ellipse((28, 52, 100, 122), fill=(175, 190, 60))
    draw.ellipse((42, 20, 86, 80), fill=(180, 195, 65))
    draw.polygon([(42, 50), (86, 50), (99, 84), (29, 84)], fill=(178, 192, 62))
    draw.ellipse((42, 62, 60, 90), fill=(215, 225, 120))
    return picture


def lamp() -> Picture:
    picture, draw = _blank()
    draw.polygon([(44, 12), (84, 12), (104, 62), (24, 62)], fill=(235, 215, 160))
    draw.rectangle((60, 62, 68, 108), fill=(130, 100, 60))
    draw.ellipse((40, 102, 88, 122), fill=(120, 90, 50))
    return picture


# The order is that in which they are offered.
DRAWN: Mapping[str, Callable[[], Picture]] = {
    draw.__name__: draw for draw in (orange, clock, sunflower, skyscraper, pear, lamp)
}


def _blank(ground: tuple[int, int, int] = (255, 255, 255)) -> tuple[Picture, ImageDraw.ImageDraw]:
    picture = Image.new("RGB", (SIDE, SIDE), ground)
    return picture, ImageDraw.Draw(picture)


def _around(radius: float, turn: float) -> tuple[float, float]:
    """Find the point that far from the middle, after this part of a turn from the top."""
    angle = 2 * math.pi * turn
    return SIDE / 2 + radius * math.sin(angle), SIDE / 2 - radius * math.cos(angle)


def _image(colours: np.ndarray) -> Picture:
    return Image.fromarray(colours.clip(0, 255).astype(np.uint8))
