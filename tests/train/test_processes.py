"""Several processes: two of them, gloo, started by torchrun as a user would, or as torchrun does it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch._C._distributed_c10d import TCPStore

from sphynx.data.batches import Batches
from sphynx.errors import InputError
from sphynx.network.builder import SphynxNetwork
from sphynx.run.work import pick_device
from sphynx.train.objective import Objective
from sphynx.train.recipe import learning_rate
from tests.train.small import DESIGN, data, recipe
from tests.warm_process import Warm

ROOT = Path(__file__).parents[2]
WORK = """
import json
import sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from sphynx.train import loop
from sphynx.train.processes import join_processes
from tests.train.small import job
out = Path(sys.argv[1])
with join_processes(torch.device("cpu")) as processes:
    result = loop.train(job(out, epochs=1, drop_path=0.0, batch_size=24, processes=processes))
    (out.parent / f"rank-{processes.rank}.json").write_text(json.dumps(result.to_json()))
"""


def by_torchrun(folder: Path, _warm: Warm) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    words = [*command, str(folder / "work.py"), str(folder / "run")]
    ran = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr


def by_hand(folder: Path, warm: Warm) -> None:
    """With the variables that torchrun sets. The store is here, as torchrun has it, on a port that is free."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
    words = [str(warm.programs / "python"), "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{WORK}"]
    processes = [
        subprocess.Popen(
            [*words, str(folder / "run")],
            env={**warm.environment, **common, "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in ("0", "1")
    ]
    for process in processes:
        _, said = process.communicate()
        assert process.returncode == 0, said


@pytest.mark.parametrize("start", [by_hand, pytest.param(by_torchrun, marks=pytest.mark.slow)])
def test_two_processes_train_one_network(start: Callable[[Path, Warm], None], tmp_path: Path, warm: Warm) -> None:
    """Each step must be the step on the mean of the two shards' gradients; here computed shard by shard, alone."""
    (tmp_path / "work.py").write_text(WORK)
    start(tmp_path, warm)
    kept = json.loads((tmp_path / "run" / "result.json").read_text())
    assert kept["processes"] == 2
    assert all(json.loads((tmp_path / f"rank-{rank}.json").read_text()) == kept for rank in (0, 1))  # each has it
    state = torch.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)["state"]["network"]

    settings, images = recipe(epochs=1, drop_path=0.0, batch_size=24), data()
    torch.manual_seed(0)
    network = SphynxNetwork(DESIGN, auxiliary=True)
    objective = Objective(network, settings)
    optimizer = torch.optim.SGD(network.parameters(), 0.1, 0.9, weight_decay=3e-4, nesterov=True)
    shards = [
        Batches(images.train, 24, device="cpu", mean=images.mean, std=images.std, shard=(rank, 2)) for rank in (0, 1)
    ]
    for batch, parts in enumerate(zip(*shards, strict=True)):
        optimizer.param_groups[0]["lr"] = learning_rate(settings, 0, batch, len(shards[0]))
        optimizer.zero_grad()
        for x, y in parts:
            (objective(x, y)[0] / 2).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), settings.grad_clip)
        optimizer.step()
    for name, parameter in network.named_parameters():
        torch.testing.assert_close(state[name], parameter.detach(), atol=1e-5, rtol=1e-4, msg=name)


def test_devices_are_checked() -> None:
    assert pick_device("cpu").type == "cpu"
    with pytest.raises(InputError, match="not a valid device"):
        pick_device("toaster")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="no usable GPU"):
            pick_device("cuda")
