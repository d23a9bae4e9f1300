"""A network that reads sound: numbers of a declared range, to which clients clip. Server and client are two processes.

python examples/12_ask_about_a_signal.py
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

import sphynx
from sphynx.service.local import running_server

OUT = Path("out/examples")
LENGTH, TONES = 128, ("low", "middle", "high")


def record(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Tones of three heights with noise, between about -1 and 1: [count, 1, 1, LENGTH]."""
    random = torch.Generator().manual_seed(seed)
    heights = torch.randint(0, len(TONES), (count,), generator=random)
    phase = 6.28 * torch.rand(count, 1, generator=random)
    time = torch.arange(LENGTH) / LENGTH
    sound = 0.6 * torch.sin(6.28 * (4 * 2.0 ** heights[:, None]) * time + phase)
    sound += 0.15 * torch.randn(count, LENGTH, generator=random)
    return sound.view(count, 1, 1, LENGTH), heights


# 1. Convolutions over time, trained on recordings. A signal is an image of one row: Flatten(2) makes it one again.
torch.manual_seed(0)
module = nn.Sequential(
    nn.Flatten(2),
    nn.Conv1d(1, 8, 9, stride=4),
    nn.ReLU(),
    nn.Conv1d(8, 8, 5, stride=2),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(8 * 13, len(TONES)),
)
sound, heights = record(300, seed=0)
optimiser = torch.optim.Adam(module.parameters(), lr=0.01)
for _ in range(60):
    optimiser.zero_grad()
    nn.functional.cross_entropy(module(sound), heights).backward()
    optimiser.step()

# 2. The program declares what it reads: numbers of -1.5 to 1.5 in 12 bits. By default the range is that of the data.
compiled = sphynx.compile_network(
    module.eval(), calibrate=sound, class_names=TONES, input_range=(-1.5, 1.5), warn=lambda _line: None
)
source = compiled.program.input
print(f"{compiled.relus} ReLUs; it reads {source.kind}, {source.low[0]:g} to {source.high[0]:g} in {source.bits} bits")

# 3. Ask a server in another process. The loud recording is clipped by the client.
others, wanted = record(3, seed=1)
asked = np.concatenate([others.numpy(), 4 * others[:1].numpy()])
with (
    tempfile.TemporaryDirectory() as home,
    running_server(compiled.save(OUT / "listener"), Path(home)) as server,
    sphynx.Client(f"127.0.0.1:{server.port}", keys=server.client_keys[0]) as client,
):
    client.prepare(len(asked))
    answers = [client.infer(array) for array in asked]
assert np.array_equal(np.stack([answer.logits for answer in answers]), compiled.infer(asked))  # to the last bit
for answer, height in zip(answers, [*wanted.tolist(), wanted[0].item()], strict=True):
    print(f"answered {answer.label}, played {TONES[height]}")
