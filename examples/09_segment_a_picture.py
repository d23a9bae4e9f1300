"""A network that answers with a map: where in a picture is the disc? Server and client are two processes.

python examples/09_segment_a_picture.py
"""

import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import sphynx
from sphynx.service.local import connected_client

OUT = Path("out/examples")
SIZE = 16


def draw(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Grey pictures of a bright disc on a noisy ground, uint8, and where the disc is."""
    random = torch.Generator().manual_seed(seed)
    x, y, radius = (torch.randint(*limits, (count, 1, 1), generator=random) for limits in ((4, 12), (4, 12), (2, 5)))
    rows, columns = torch.arange(SIZE).view(1, -1, 1), torch.arange(SIZE).view(1, 1, -1)
    inside = ((rows - y) ** 2 + (columns - x) ** 2 <= radius**2)[:, None]
    noise = torch.randint(0, 110, (count, 1, SIZE, SIZE), generator=random)
    return (noise + 110 * inside).to(torch.uint8), inside.float()


# 1. Down, up again, and a sigmoid for each pixel: trained on what was drawn.
torch.manual_seed(0)
module = nn.Sequential(
    nn.Conv2d(1, 8, 3, stride=2, padding=1),
    nn.ReLU(),
    nn.Conv2d(8, 8, 3, padding=1),
    nn.ReLU(),
    nn.ConvTranspose2d(8, 1, 4, stride=2, padding=1),
    nn.Sigmoid(),
)
pictures, masks = draw(200, seed=0)
optimiser = torch.optim.Adam(module.parameters(), lr=0.02)
for _ in range(60):
    optimiser.zero_grad()
    nn.functional.binary_cross_entropy(module(pictures / 255), masks).backward()
    optimiser.step()

# 2. The map is an output like any other. The sigmoid is the client's part.
compiled = sphynx.compile_network(module.eval(), calibrate=pictures)
(output,) = compiled.program.outputs
print(f"{compiled.relus} ReLUs; the output {output.name} is a map of {output.dims}, behind a {output.final}")

# 3. Ask a server in another process.
others, wanted = draw(3, seed=1)
with tempfile.TemporaryDirectory() as home, connected_client(compiled.save(OUT / "segmenter"), Path(home)) as client:
    client.prepare(len(others))
    found = [client.infer(picture).outputs["logits"] for picture in others.numpy()]
in_the_clear = compiled.outputs(others.numpy())["logits"]
for number, (one, mask) in enumerate(zip(found, wanted.numpy(), strict=True)):
    assert (one == in_the_clear[number]).all()  # to the last bit
    overlap = ((one > 0.5) & (mask > 0.5)).sum() / ((one > 0.5) | (mask > 0.5)).sum()
    print(f"picture {number}: intersection over union {overlap:.2f}")
