"""A folder of pictures becomes a trained network: one folder per class, a ReLU budget, a training.

python examples/02_train_your_own_images.py             # draws some shapes first
python examples/02_train_your_own_images.py photos      # photos/cat/1.jpg, photos/dog/2.png, ...
"""

import random
import sys
from pathlib import Path

from PIL import Image, ImageDraw

import sphynx

OUT = Path("out/examples")
SIZE = 16  # pixels: small pictures are cheap


def draw_shapes(folder: Path, count: int = 60) -> None:
    """Discs, squares and triangles of random colours and places."""
    chance = random.Random(0)
    for kind in ("disc", "square", "triangle"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            ground, colour = (tuple(chance.randrange(low, low + 90) for _ in range(3)) for low in (0, 160))
            picture = Image.new("RGB", (SIZE, SIZE), ground)
            x, y, side = chance.randrange(5), chance.randrange(5), chance.randrange(8, 11)
            pen = ImageDraw.Draw(picture)
            if kind == "disc":
                pen.ellipse((x, y, x + side, y + side), fill=colour)
            elif kind == "square":
                pen.rectangle((x, y, x + side, y + side), fill=colour)
            else:
                pen.polygon([(x, y + side), (x + side, y + side), (x + side // 2, y)], fill=colour)
            picture.save(folder / kind / f"{number}.png")


def heard(update: sphynx.Update) -> None:
    if update.values:
        print(f"  step {update.done} of {update.total}: loss {update.values['loss']:.2f}")


pictures = Path(sys.argv[1]) if len(sys.argv) > 1 else OUT / "shapes"
if len(sys.argv) == 1:
    draw_shapes(pictures)

# 1. A fifth of each class becomes the test set, always the same fifth.
data = sphynx.open_data(pictures, image_size=SIZE)
print(f"{len(data.train)} pictures to learn from, {len(data.test)} to test with: {', '.join(data.train.class_names)}")

# 2. The budget decides how wide and deep the network is. Both reduce cells first: as many ReLUs, more accurate.
chosen = sphynx.plan("2k", image=data.image, classes=data.classes).design
design = sphynx.Design(chosen.genotype, chosen.channels, chosen.depth, (0, 1), chosen.image, chosen.classes)
print(f"{design.channels} channels, {design.depth} cells: {design.relus:,} ReLUs, {design.parameters:,} parameters")

# 3. Train. The folder keeps everything, and resume=True would continue an interrupted training.
trained = sphynx.train_network(
    design, data, out=OUT / "network", settings={"epochs": 6, "batch_size": 32}, resume=True, progress=heard
)
print(f"{trained.accuracy:.1%} of the test pictures are right; {OUT / 'network'} has the weights")
