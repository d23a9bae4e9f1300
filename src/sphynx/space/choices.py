"""The words that a design may use: one list for designs, their files, and the flags of the verbs."""

from __future__ import annotations

from typing import Literal

Family = Literal["cells", "stream"]
FamilyChoice = Literal["auto", "cells", "stream"]  # auto: the better one for data and budget
Stem = Literal["small", "imagenet"]
StemChoice = Literal["auto", "small", "imagenet"]  # auto: by the size of the images
Balancing = Literal["relu", "flop"]
ConvStack = Literal["paper", "single", "pad_once"]  # the form of conv3 and conv5
Convolution = Literal["vanilla", "separable"]
Borders = Literal["zero", "halo"]  # of a stream
Pool = Literal["max", "average"]  # of a reference network

# From this size on, the three stride-2 convolutions of the ImageNet stem come first unless one is chosen.
IMAGENET_STEM_FROM = 128
