"""A process holds no native object at its end: nanobind would report it as leaked."""

import subprocess
import sys

# Another reference to the caches stands for whatever keeps modules alive at the end, as a test worker does.
HOLDS_ITS_CACHES = """
import ctypes
from sphynx.program.folder import load_program
from sphynx.protocol import garbled_layer, linear_plan, relu_gc
from sphynx.zoo.shipped import program_path
linear_plan.plan_program(load_program(program_path("sphynx-cifar100-25k")))
relu_gc.messages(relu_gc.ReluShape(20, 32, 3, 10))
for kept in (linear_plan.plan_program, garbled_layer._circuit):
    assert kept.cache_info().currsize
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
"""


def test_caches_hold_no_native_object_at_exit() -> None:
    ran = subprocess.run([sys.executable, "-c", HOLDS_ITS_CACHES], capture_output=True, text=True, check=True)
    assert "leaked instance" not in ran.stderr
