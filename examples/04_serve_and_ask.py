"""A server and a client over mutual TLS: the client learns the answer, the server learns nothing about the picture.

Run 03_compile_and_check.py first. In real use the parties are two machines: `sphynx serve` on one, and on the other the
last block, which needs neither torch nor the weights.

python examples/04_serve_and_ask.py
"""

from pathlib import Path

import sphynx

OUT = Path("out/examples")
KEYS = OUT / "keys"

# 1. An authority of our own admits one server and one client.
if not KEYS.exists():
    sphynx.keys.init(KEYS)
    sphynx.keys.issue(KEYS, "server", hosts=["127.0.0.1"])
    sphynx.keys.issue(KEYS, "alice")

# 2. The server has the weights.
with sphynx.Server(OUT / "compiled", keys=KEYS / "server", listen="127.0.0.1:0") as server:
    print(f"serving on {server.address}")

    # 3. The client has the picture. Its expensive part happens before there is one.
    with sphynx.Client(server.address, keys=KEYS / "alice") as client:
        print(f"it tells {', '.join(client.class_names)} apart, on pictures of {client.image_shape}")
        backend = client.prepare(3)
        print(f"prepared {client.ready} bundles for {backend}, each for one picture")
        for kind in client.class_names:
            answer = client.infer(OUT / "shapes" / kind / "0.png")
            print(f"{kind:<9} -> {answer.label:<9} {answer.probability:4.0%} in {answer.online_rounds} rounds")
        print(f"{client.ready} bundles are left: each serves once")
