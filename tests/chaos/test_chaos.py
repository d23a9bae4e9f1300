"""A slice of the chaos run and of the soak, each in a process of its own: forking is for processes without threads."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from sphynx.errors import DiskError, PeerGaveUpError
from sphynx.service.ledger_file import _START_ANEW
from sphynx.service.server import _words_for_peer
from tests.chaos.proxy import NETWORK_FAULTS
from tests.chaos.soak import show, usage
from tests.chaos.strike import PROCESS_FAULTS
from tests.chaos.world import whose_is_damaged
from tests.service.processes import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, prctl and prlimit")


def run(*arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_damage_found_late_is_remedied_as_the_error_says() -> None:
    ours = DiskError("it is damaged (database disk image is malformed)", where="ledger", remedy=_START_ANEW)
    for error, whose in (
        (ours, "client"),
        (PeerGaveUpError(_words_for_peer(ours)[0], where="peer", remedy=_words_for_peer(ours)[1]), "server"),
        (PeerGaveUpError("the server is busy", where="peer", remedy="See the peer's log."), ""),
    ):
        assert whose_is_damaged([{"used": "client 1"}, {"what": error.what, "remedy": error.remedy}]) == whose


def test_one_point_of_every_fault() -> None:
    said = run("tests.chaos", "--each", "1", "--minutes", "4", "--seed", "1", "--verbose")
    rows = [line for line in said.splitlines() if line.startswith((*PROCESS_FAULTS, *NETWORK_FAULTS))]
    assert len(rows) >= 12  # some may not come about
    for row in rows:
        points, survived, _lost, wrong, _restarts, unforeseen = map(int, row.split()[-6:])
        assert (points, survived, wrong, unforeseen) == (1, 1, 0, 0)
    assert re.search(r"bundles reused: 0 of \d\d+ halves used", said)


@pytest.mark.slow
def test_a_short_soak_has_no_wrong_answer_and_leaves_nothing_behind() -> None:
    said = run("tests.chaos.soak", "--minutes", "0.03", "--clients", "4", "--no-timing")
    assert " 0 wrong, 0 failed" in said and "bounds      kept" in said


@pytest.mark.slow
def test_honest_clients_get_no_strike_whoever_is_killed() -> None:
    found = json.loads(run("tests.chaos.honest", "--inferences", "40", "--kills", "4", "--seed", "1"))
    assert found["inferences"] >= 40 and sum(found["faults"].values()) == 4
    assert (found["strikes"], found["wrong"], found["bundles_twice"]) == (0, 0, 0)


def test_a_process_that_ended_is_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    before = usage(os.getpid())
    assert all(before.values())
    ended = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    assert usage(ended.pid)["memory_mb"] == 0  # not waited for yet
    ended.wait()
    assert not any(usage(ended.pid).values())
    both = {"server": before, "clients 0": usage(ended.pid)}
    assert show(before, {"server": before, "clients 0": before}, both, before, [], [], 1, 1.0, False) == 1
    assert "clients 0: ended, no inferences" in capsys.readouterr().out


@pytest.mark.slow  # tests/service/test_replicas.py shows each of its parts
def test_three_replicas_of_which_one_is_killed_and_one_restarted() -> None:
    found = json.loads(run("tests.chaos.replicas", "--clients", "5", "--seconds", "4"))
    assert found["wrong"] == found["bundles_twice"] == found["lost_inferences"]["not_running"] == 0
    assert found["inferences"] >= 5 and not found["clients_ended"]
