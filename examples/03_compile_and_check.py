"""A trained network becomes exact integers, and is compared with what it was. Run 02_train_your_own_images.py first.

python examples/03_compile_and_check.py
"""

from pathlib import Path

import sphynx

OUT = Path("out/examples")

# 1. Fold batch norms, fuse linear maps, choose scales from training images, round.
network = sphynx.load_network(OUT / "network")
compiled = sphynx.compile_network(network)
print(f"{compiled.relus:,} ReLUs on integers modulo 2^{compiled.program.ring_bits}")
print(f"logits are off by {compiled.logit_error:.1e} of their spread")

# 2. The integers beside the float network, on all test images. A layer that leaves its range would be named here.
checked = compiled.check(network=network)
assert checked.float_network is not None
print(f"{checked.accuracy:.1%} right as integers, {checked.float_network.accuracy:.1%} as floats")
print(f"both name the same class for {checked.float_network.agreement:.1%}")

# 3. A private inference of the same integers, both parties in this process: equal to the last bit.
pictures = compiled.images(images=2).images
for backend in ("gmw", "gc"):
    answer = compiled.infer_privately(pictures[:1], backend=backend)[0]
    assert (answer.logits == compiled.infer(pictures[:1])[0]).all()
    print(
        f"{backend}: {answer.label}, {answer.online_bytes:,} bytes and {answer.online_rounds} rounds online, "
        f"{answer.offline_bytes:,} bytes before"
    )

# 4. What a server needs, and what only it may read.
compiled.save(OUT / "compiled")
for file in sorted((OUT / "compiled").iterdir()):
    print(f"  {file.name:<24} {file.stat().st_size:>9,} bytes")
