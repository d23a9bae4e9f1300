"""Private inference of a program (DELPHI's shape, eprint 2020/050; semi-honest): the outputs, bit for bit those of
sphynx.program.interpret, without the server seeing the image or the client the weights.

                   client (image)                                        server (weights W)

    setup          keys                    -- public key, OT set-up -->  (and back)
    offline        mask r for pixels and   ----- Enc(r << shift) ----->
    (no image      each activation         <----- Enc(W r - s) --------  share s of each linear map
    needed)        share W r - s           <-- ReLU material: labels, -> ReLU material
                                               masks, by OT
    = a Bundle     r, W r - s, material                                  s, material

    online         pixels x                ---------- x - r ---------->  linear maps: W (x - r) + s + bias
                   ReLU: holds W r - s,    <------ backend: gc -------> ReLU: holds the rest of x,
                   gets its r'                    or gmw                 gets y - r'
                          ...one exchange for each activation...
                   outputs = shares added  <-- its shares of outputs --     (or a label alone: answer.py)

Each party's half of a bundle is spent by one inference; whoever drives the parties (`inference_server.py`,
`inference_client.py`) burns it before `infer`. Bundles can be prepared as a group: the images of all of them go through
the linear maps at once, where they share ciphertexts (`linear_plan.py`); then each gets ReLU material of its own, and
nothing else in them is shared. For every group the secrets come from a new generator, which the operating system seeds;
a given one serves all, in tests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from sphynx.program.backends import Backend
from sphynx.program.extensions import SOFTSPOKEN, Extensions
from sphynx.program.ir import INPUT, Program
from sphynx.protocol.answer import AnswerLayer
from sphynx.protocol.bundle import Bundle
from sphynx.protocol.channel import Section
from sphynx.protocol.verify.parties import checked_messages
from sphynx.protocol.verify.plan import CheckPlan

MASKED_PICTURE = Section("online", INPUT)  # in it the client sends the one message that depends on the picture


class Party(ABC):
    """One connection's side, of either role."""

    def prepare(self, bundle_id: bytes, backend: Backend, batch: int = 1, made: Extensions = SOFTSPOKEN) -> Bundle:
        return self.prepare_group([bundle_id], backend, batch, made)[0]

    def prepare_group(
        self, bundle_ids: Sequence[bytes], backend: Backend, batch: int = 1, made: Extensions = SOFTSPOKEN
    ) -> list[Bundle]:
        """Prepare bundles of `batch` images each, all or none, by OTs that are extended this way."""
        return list(self.prepare_each(bundle_ids, backend, batch, made))

    @abstractmethod
    def prepare_each(
        self, bundle_ids: Sequence[bytes], backend: Backend, batch: int = 1, made: Extensions = SOFTSPOKEN
    ) -> Iterator[Bundle]:
        """Prepare a group, and give each bundle as soon as it is made: whoever writes it need not hold the others."""


def other_messages(
    program: Program, check: CheckPlan | None, answer: AnswerLayer | None, backend: Backend, images: int
) -> Iterator[tuple[str, int]]:
    """Bytes of messages that do not depend on the backend, by name."""
    if check:
        yield from checked_messages(program, check, backend, images)
    if answer:
        yield from answer.message_sizes()
