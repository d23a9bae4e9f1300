"""A network file and pictures without labels become a network with a fifth of the ReLUs, which answers privately.

Writing the ONNX file needs the package onnx; what follows does not.

python examples/08_reduce_a_network.py
"""

from pathlib import Path

import torch
from PIL import Image
from torch import nn

import sphynx

OUT = Path("out/examples/reduce")
FILE, PICTURES, KEYS = OUT / "mine.onnx", OUT / "pictures", OUT / "keys"

# 1. What you may have: a trained network as a file, in which batch norm is folded into convolutions, and pictures like
#    those it was trained on, which nobody has labelled. Here both are made of the digits.
digits = sphynx.open_data("digits")
torch.manual_seed(0)
module = nn.Sequential(
    *(nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()),
    *(nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()),
    *(nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()),
    *(nn.AvgPool2d(2), nn.Flatten(), nn.Linear(64, 10)),
)
images = (digits.train.images.float() / 255 - digits.mean[0]) / digits.std[0]
optimiser = torch.optim.Adam(module.parameters(), lr=0.01)
for _ in range(8):
    for batch in torch.randperm(len(images)).split(64):
        optimiser.zero_grad()
        nn.functional.cross_entropy(module(images[batch]), digits.train.labels[batch]).backward()
        optimiser.step()
PICTURES.mkdir(parents=True, exist_ok=True)
for number, image in enumerate(digits.train.images[:, 0].numpy()):
    Image.fromarray(image).save(PICTURES / f"{number}.png")
torch.onnx.export(module.eval(), (images[:1],), str(FILE), dynamo=False)

# 2. Take it down to 200 of its 1,024 ReLUs. It learns from the file's own answers to the pictures. `mean` and `std` are
#    what the file's inputs were normalised by; without them it would get pixel / 255.
result = sphynx.reduce_network(
    FILE, PICTURES, relu_budget=200, out=OUT / "run", method="channels", mean=digits.mean, std=digits.std, resume=True
)
print(f"{result.original_relus} ReLUs before, {result.best.counts.relus} now")
print(f"  the same answer as the file's to {result.best.agreement:.1%} of the pictures kept for the test")
print(f"  {sphynx.evaluate_network(OUT / 'run', digits).accuracy:.1%} of the digits' test images are right")

# 3. Compile it, serve it, ask it.
sphynx.compile_network(OUT / "run", calibrate=PICTURES).save(OUT / "compiled")
if not KEYS.exists():
    sphynx.keys.init(KEYS)
    sphynx.keys.issue(KEYS, "server", hosts=["127.0.0.1"])
    sphynx.keys.issue(KEYS, "alice")
with (
    sphynx.Server(OUT / "compiled", keys=KEYS / "server", listen="127.0.0.1:0") as server,
    sphynx.Client(server.address, keys=KEYS / "alice") as client,
):
    client.prepare(2)
    for number in (0, 1):
        answer = client.infer(PICTURES / f"{number}.png")
        print(f"picture {number}: {answer.label} privately, {digits.train.labels[number]} in truth")
