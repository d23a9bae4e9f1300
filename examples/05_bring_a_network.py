"""A network that was made elsewhere runs privately: a torch module, or a file of it (.pt2 or ONNX).

python examples/05_bring_a_network.py
"""

from pathlib import Path

import torch
from torch import nn

import sphynx

OUT = Path("out/examples")

# 1. Any module of the operators that docs/compiler.md lists, trained in any way: here in plain torch.
digits = sphynx.open_data("digits")
images = (digits.train.images.float() / 255 - digits.mean[0]) / digits.std[0]
torch.manual_seed(0)
module = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1, bias=False),
    nn.BatchNorm2d(8),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, stride=2, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(64, 10),
)
optimiser = torch.optim.Adam(module.parameters(), lr=0.01)
for _ in range(5):
    for batch in torch.randperm(len(images)).split(64):
        optimiser.zero_grad()
        nn.functional.cross_entropy(module(images[batch]), digits.train.labels[batch]).backward()
        optimiser.step()

# 2. Compile it as it is. `calibrate` is what it was trained on: it sets scales, and names the classes. `mean` and `std`
#    are what its inputs were normalised by above; without them it would get pixel / 255.
compiled = sphynx.compile_network(module, calibrate=digits, mean=digits.mean, std=digits.std)
judged = compiled.judged
assert judged is not None
print(f"torch: {compiled.relus} ReLUs and {compiled.comparisons} comparisons of the max pool")
print(f"  same class as in torch for {judged.same_class:.1%} of {judged.images} images")
print(f"  accuracy on them {judged.accuracy:.1%}, in torch {judged.float_accuracy:.1%}")

# 3. Ask it privately.
pictures = digits.test.images[:3].numpy()
answers = compiled.infer_privately(pictures)
print(f"  private answers {[answer.label for answer in answers]}, labels {digits.test.labels[:3].tolist()}")

# 4. A file of it is compiled as well; so is an ONNX file.
file = OUT / "mine.pt2"
OUT.mkdir(parents=True, exist_ok=True)
torch.export.save(torch.export.export(module.eval(), (images[:1],)), file)
from_file = sphynx.compile_network(file, calibrate=digits, mean=digits.mean, std=digits.std)
labels = [from_file.class_names[logits.argmax()] for logits in from_file.infer(pictures)]
print(f"pt2: {file.stat().st_size:,} bytes, {from_file.relus} ReLUs, answers {labels}")
