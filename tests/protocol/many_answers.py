"""Ask about many pictures privately, in bundles of 16, and hold each label, or all logits, against the oracle's.

python -m tests.protocol.many_answers stream-cifar100-12k --data ~/data/cifar100 --backend gmw
python -m tests.protocol.many_answers stream-cifar100-12k --data ~/data/cifar100 --security malicious-client
python -m tests.protocol.many_answers stream-chest-xray-11k --data xrays-128 --images 624 --backend gmw --reveal logits
"""

from __future__ import annotations

import argparse
import os
import sys

import numpy as np
from tests.protocol.parties import run_parties

import sphynx
from sphynx.program.interpret import interpret
from sphynx.program.labels import find_labels
from sphynx.program.revealing import revealing_label
from sphynx.protocol.channel import Channel, Record
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.protocol.verify.plan import plan_security

BATCH = 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("--data", required=True)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--backend", default="gc")
    parser.add_argument("--security", default="semi-honest")
    parser.add_argument("--reveal", choices=("label", "logits"), default="label")
    parser.add_argument("--margin", type=float, default=0.0)
    given = parser.parse_args()
    compiled = sphynx.Compiled.load(given.name)
    labels = given.reveal == "label"
    program = revealing_label(compiled.program, given.margin) if labels else compiled.program
    pixels = np.asarray(compiled.images(given.data, images=given.images).images)
    expected = interpret(compiled.program, compiled.weights, pixels)
    if labels:
        expected = find_labels(expected, program.outputs[0].margin)[:, None]
    check = plan_security(given.security, program, compiled.weights)
    model = ServerModel(program, dict(compiled.weights), check=check)
    batches = [pixels[first : first + BATCH] for first in range(0, len(pixels), BATCH)]
    ids = [os.urandom(16) for _ in batches]

    def server(channel: Channel) -> None:
        party = InferenceServer(model, channel)
        for bundle_id, part in zip(ids, batches, strict=True):
            party.infer(party.prepare(bundle_id, given.backend, len(part)))

    def client(channel: Channel) -> tuple[list[list[int]], Record]:
        party, found = InferenceClient(program, channel, check=check), list[list[int]]()
        for bundle_id, part in zip(ids, batches, strict=True):
            found += party.infer(party.prepare(bundle_id, given.backend, len(part)), part).tolist()
            print(f"{len(found)} of {len(pixels)}", end="\r", file=sys.stderr)
        return found, channel.take_record()

    found, record = run_parties(server, client, timeout_s=3600)[1]
    equal = int((np.array(found) == expected).all(1).sum())
    unsure = f", {int((expected < 0).sum())} not sure" if labels else ""
    traffic = f"{record.total('offline').bytes:,} bytes offline, {record.total('online').bytes:,} online"
    print(f"{equal} of {len(pixels)} answers ({given.reveal}) equal to the oracle's{unsure}; {traffic}")
    if equal < len(pixels):
        sys.exit(1)


if __name__ == "__main__":
    main()
