"""Check that two parties could run a program: when it is compiled, so that not the first inference finds out."""

from __future__ import annotations

from collections.abc import Mapping

from sphynx.errors import SphynxError
from sphynx.program.backends import BACKENDS, Backend
from sphynx.program.convolve import Array
from sphynx.program.ir import Program
from sphynx.protocol.activations import Layers, activation_layers
from sphynx.protocol.linear_plan import ProgramPlan, plan_program
from sphynx.protocol.message_sizes import check_messages
from sphynx.protocol.off_by_one import require_rare


def require_runnable(program: Program, weights: Mapping[str, Array]) -> None:
    """Refuse by its name a layer that does not fit a ciphertext, a message or a backend, and too noisy programs.

    What one of the backends can run is enough.
    """
    plan, layers = plan_program(program), activation_layers(program, 1)
    require_rare(program, weights)
    refusals = [refusal for backend in BACKENDS if (refusal := _refusal(plan, layers, backend)) is not None]
    if len(refusals) == len(BACKENDS):
        raise refusals[0]


def _refusal(plan: ProgramPlan, layers: Layers, backend: Backend) -> SphynxError | None:
    try:
        check_messages(plan, layers, backend, images=1)
    except SphynxError as refusal:
        return refusal
    return None
