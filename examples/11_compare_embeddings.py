"""An embedding: who wrote that, is it the same digit? The client compares vectors that the server never sees.

python examples/11_compare_embeddings.py
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

import sphynx
from sphynx.service.local import connected_client

OUT = Path("out/examples")


class Recogniser(nn.Module):
    """Trained to tell classes apart; what is wanted of it is the vector before them."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(16, 24, 3, padding=1), nn.ReLU()
        )
        self.embed, self.classes = nn.Linear(24 * 16, 16), nn.Linear(16, 10)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        embedding = self.embed(self.body(x).flatten(1))
        return {"embedding": embedding, "classes": self.classes(embedding)}


# 1. Train it on digits 0 to 7 only: 8 and 9 are people whom it never met.
digits = sphynx.open_data("digits")
known = digits.train.labels < 8
pictures, labels = digits.train.images[known], digits.train.labels[known]
torch.manual_seed(0)
module = Recogniser()
optimiser = torch.optim.Adam(module.parameters(), lr=0.01)
for _ in range(5):
    for batch in torch.randperm(len(pictures)).split(64):
        optimiser.zero_grad()
        nn.functional.cross_entropy(module(pictures[batch] / 255)["classes"], labels[batch]).backward()
        optimiser.step()

# 2. One head is served: the scores of classes stay with the server.
compiled = sphynx.compile_network(module.eval(), calibrate=pictures, heads=["embedding"])
print(f"{compiled.relus} ReLUs, outputs {[output.name for output in compiled.program.outputs]}")

# 3. Embed one enrolled picture each of 8 and 9 and some more, and compare: cosines, nearest first.
test = digits.test
chosen = {digit: test.images[test.labels == digit][:3].numpy() for digit in (8, 9)}
with tempfile.TemporaryDirectory() as home, connected_client(compiled.save(OUT / "recogniser"), Path(home)) as client:
    client.prepare(6)
    vectors = {
        digit: [client.infer(picture).outputs["embedding"] for picture in group] for digit, group in chosen.items()
    }
for digit, found in vectors.items():
    assert np.array_equal(np.stack(found), compiled.outputs(chosen[digit])["embedding"])  # to the last bit


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


for digit, embedded in vectors.items():
    for vector in embedded[1:]:
        likeness = {enrolled: cosine(vectors[enrolled][0], vector) for enrolled in vectors}
        print(f"a {digit}: " + ", ".join(f"like the enrolled {name} {value:.2f}" for name, value in likeness.items()))
