"""A detector's heads: scores on a grid, and a box for each place. The client decodes them; nobody else sees them.

python examples/10_detect_boxes.py
"""

import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import sphynx
from sphynx.service.local import connected_client

OUT = Path("out/examples")
SIZE, CELL = 16, 4  # pixels of a picture, and of a place of the grid


class Detector(nn.Module):
    """As detectors are exported: a dictionary of heads, channels last."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 12, 5, stride=2, padding=2), nn.ReLU(), nn.Conv2d(12, 16, 3, stride=2, padding=1), nn.ReLU()
        )
        self.scores, self.boxes = nn.Conv2d(16, 1, 1), nn.Conv2d(16, 4, 1)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        x = self.body(x)
        return {"scores": self.scores(x).sigmoid(), "boxes": self.boxes(x).permute(0, 2, 3, 1)}


def draw(count: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Pictures of one bright rectangle; the place of the grid with its middle; its box: middle, height, width."""
    random = torch.Generator().manual_seed(seed)
    sizes = torch.randint(3, 8, (count, 2), generator=random)
    corners = (torch.rand(count, 2, generator=random) * (SIZE - sizes)).long()
    rows, columns = torch.arange(SIZE).view(1, -1, 1), torch.arange(SIZE).view(1, 1, -1)
    (top, left), (bottom, right) = (each.T[..., None, None] for each in (corners, corners + sizes))
    inside = (rows >= top) & (rows < bottom) & (columns >= left) & (columns < right)
    pictures = torch.randint(0, 90, (count, SIZE, SIZE), generator=random) + 140 * inside
    boxes = torch.cat([corners + sizes / 2, sizes], 1)
    places = (boxes[:, :2] // CELL).long()
    return pictures[:, None].to(torch.uint8), places[:, 0] * (SIZE // CELL) + places[:, 1], boxes


# 1. Train both heads on what was drawn.
torch.manual_seed(0)
module, (pictures, places, boxes) = Detector(), draw(300, seed=0)
optimiser = torch.optim.Adam(module.parameters(), lr=0.01)
for _ in range(300):
    found = module(pictures / 255)
    target = nn.functional.one_hot(places, (SIZE // CELL) ** 2).float()
    loss = nn.functional.binary_cross_entropy(found["scores"].flatten(1), target)
    at = found["boxes"].flatten(1, 2)[torch.arange(len(places)), places]
    optimiser.zero_grad()
    (loss + 0.05 * nn.functional.l1_loss(at, boxes)).backward()
    optimiser.step()

# 2. Several heads are one program with several outputs; each is judged by itself.
compiled = sphynx.compile_network(module.eval(), calibrate=pictures)
assert compiled.judged is not None
print(", ".join(f"{output.name} off by {output.error:.2%}" for output in compiled.judged.outputs))

# 3. Ask a server in another process; take the best place's box.
others, _places, wanted = draw(3, seed=1)
with tempfile.TemporaryDirectory() as home, connected_client(compiled.save(OUT / "detector"), Path(home)) as client:
    client.prepare(len(others))
    for picture, box in zip(others.numpy(), wanted.tolist(), strict=True):
        heads = client.infer(picture).outputs
        assert all((compiled.outputs(picture[None])[name][0] == array).all() for name, array in heads.items())
        row, column = divmod(int(heads["scores"][0].argmax()), SIZE // CELL)
        print(f"found {heads['boxes'][row, column].round(1).tolist()}, drawn {[round(n, 1) for n in box]}")
