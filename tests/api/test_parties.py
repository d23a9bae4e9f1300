"""Server and client by the names of `import sphynx`: a server in a thread of this process, clients over real TLS."""

from __future__ import annotations

import io
import json
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import sphynx


def pixels(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (1, 4, 4), np.uint8)


def test_a_picture_is_asked_about_in_every_form(
    server: sphynx.Server, tiny: sphynx.Compiled, authority: Path, tmp_path: Path
) -> None:
    image = pixels(1)
    logits = tiny.infer(image[None])[0]
    file = tmp_path / "picture.png"
    Image.fromarray(image[0]).save(file)
    with sphynx.Client(server.address, keys=str(authority / "alice"), state=tmp_path / "bundles") as client:
        assert (client.image_shape, client.class_names) == ((1, 4, 4), ("cat", "dog", "bird"))
        assert client.prepare(2, backend="gc") == "gc" and client.ready == 2
        client.warm()
        forms = (str(file), file, Image.open(file), image, image[0], image.transpose(1, 2, 0))
        answers = [client.infer(form) for form in forms]
        assert client.ready == 0
        with pytest.raises(sphynx.InputError, match=r"float64 of shape \(4, 4\)") as refused:
            client.infer(np.zeros((4, 4)))
        assert "uint8 images of shape (1, 4, 4)" in refused.value.remedy
    for answer in answers:
        assert np.array_equal(answer.logits, logits)
        assert answer.label == ("cat", "dog", "bird")[int(logits.argmax())]
        assert answer.probability == max(answer.probabilities) and answer.online_seconds > 0


def test_a_question_can_insist_on_a_backend(server: sphynx.Server, authority: Path, tmp_path: Path) -> None:
    with sphynx.Client(server.address, keys=authority / "alice", state=tmp_path / "bundles") as client:
        client.prepare(1, backend="gc")
        assert client.infer(pixels(1), backend="gmw").backend == "gmw"  # made for it
        assert (client.ready_with("gc"), client.ready_with("gmw")) == (1, 0)
        assert client.infer(pixels(1)).backend == "gc"


def test_a_client_insists_on_its_own_backend(server: sphynx.Server, authority: Path, tmp_path: Path) -> None:
    with sphynx.Client(server.address, keys=authority / "alice", state=tmp_path / "bundles", backend="gmw") as client:
        client.prepare(1, backend="gc")
        client.warm()  # for the next inference, so not the bundle that is ready
        assert (client.ready_with("gc"), client.ready_with("gmw")) == (1, 1)
        assert client.infer(pixels(1)).backend == "gmw"
        assert client.prepare(1) == "gmw"
        assert client.infer(pixels(1), backend="auto").backend == "gc"  # the older one
        whole = client.program.content_hash
    with sphynx.Client(
        server.address, keys=authority / "alice", state=tmp_path / "bundles", program=whole[:16].upper()
    ) as client:
        assert client.program.content_hash == whole


def test_wrong_values_are_refused_before_anything_is_sent(
    tiny: sphynx.Compiled, authority: Path, tmp_path: Path
) -> None:
    nobody = sphynx.Client("127.0.0.1:1", keys=authority / "alice", state=tmp_path, wait_s=0)
    for count in (0, -1):
        with pytest.raises(sphynx.InputError, match=f"`count`: {count} bundles"):
            nobody.prepare(count)
    for wrong in (
        lambda: nobody.infer(pixels(1), backend="foo"),  # type: ignore[arg-type]
        lambda: nobody.prepare(1, backend="foo"),  # type: ignore[arg-type]
        lambda: nobody.warm(backend="foo"),  # type: ignore[arg-type]
        lambda: sphynx.Client("127.0.0.1:1", keys=authority / "alice", backend="foo"),  # type: ignore[arg-type]
    ):
        with pytest.raises(sphynx.InputError, match="`backend`: 'foo' is not a ReLU backend") as refused:
            wrong()
        assert refused.value.remedy == "Choose auto, gc or gmw."
    with pytest.raises(sphynx.InputError, match="program: 'compiled/digits' is neither a program's hash nor a name"):
        sphynx.Client("127.0.0.1:1", keys=authority / "alice", program="compiled/digits")
    for digits in ("0" * 15, "0" * 65):
        with pytest.raises(sphynx.InputError, match=r"program: .* is not a program's hash") as refused:
            sphynx.Client("127.0.0.1:1", keys=authority / "alice", program=digits)
        assert "first 16 hex digits" in refused.value.remedy
    for backend in ("foo", "auto"):
        with pytest.raises(sphynx.InputError, match=f"`backend`: '{backend}' is not a ReLU backend"):
            tiny.infer_privately(pixels(1)[None], backend=backend)  # type: ignore[arg-type]


def test_threads_share_a_client(server: sphynx.Server, tiny: sphynx.Compiled, authority: Path, tmp_path: Path) -> None:
    images = np.stack([pixels(seed) for seed in range(6)])
    client = sphynx.Client(server.address, keys=authority / "alice", state=tmp_path / "bundles")
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda image: client.infer(image).logits, images))
    client.close()
    assert np.array_equal(np.stack(found), tiny.infer(images))


def test_after_any_error_the_next_call_connects_again(server: sphynx.Server, authority: Path, tmp_path: Path) -> None:
    """Also where the descriptor of the closed connection is another's by then, a silent one's."""

    def fail(_update: sphynx.Update) -> None:
        raise RuntimeError("the caller's own")

    with sphynx.Client(server.address, keys=authority / "alice", state=tmp_path) as client, ExitStack() as silent:
        with pytest.raises(RuntimeError):
            client.prepare(1, backend="gmw", progress=fail)
        for _ in range(8):
            for end in socket.socketpair():
                silent.enter_context(end)
        client.prepare(1, backend="gmw")


def test_a_client_connects_again_after_its_server_came_back(
    tiny: sphynx.Compiled, authority: Path, tmp_path: Path
) -> None:
    log = io.StringIO()
    first = sphynx.Server(
        tiny, keys=authority / "server", listen="127.0.0.1:0", state=tmp_path / "server", log=log, metrics="127.0.0.1:0"
    ).start()
    address = first.address
    assert first.metrics_port
    patient, impatient = (
        sphynx.Client(address, keys=authority / "alice", state=tmp_path / f"waits-{wait_s}", wait_s=wait_s)
        for wait_s in (30.0, 0.0)
    )
    for client in (patient, impatient):
        client.infer(pixels(0))
    first.stop()
    first.stop()
    with pytest.raises(sphynx.ConnectionLostError, match="no connection"):
        impatient.infer(pixels(0))
    later = sphynx.Server(tiny, keys=authority / "server", listen=address, state=tmp_path / "server")
    starting = threading.Timer(0.5, later.start)
    starting.start()
    for client in (patient, impatient):  # the first waits for the server
        client.infer(pixels(0))
        client.close()
    starting.join()
    later.stop()
    events = [json.loads(line)["event"] for line in log.getvalue().splitlines()]
    assert events[0] == "serving" and events[-1] == "stopped" and "inferred" in events
    with pytest.raises(sphynx.InputError, match="is not running"):
        _ = later.port


def test_a_server_leaves_the_process_as_it_was(tiny: sphynx.Compiled, authority: Path, tmp_path: Path) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    # What was never saved has no folder: bundles are in a temporary one.
    unsaved = sphynx.Compiled(tiny.program, tiny.weights, "tiny")
    with sphynx.Server(unsaved, keys=authority / "server", listen="127.0.0.1:0") as server:
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
        with pytest.raises(sphynx.InputError, match="already running"):
            server.start()
        with sphynx.Client(server.address, keys=authority / "alice", state=tmp_path) as client:
            assert client.infer(pixels(3)).label in tiny.class_names
    assert not server._worker.is_alive
    assert "weights" not in repr(unsaved)  # secrets: no log or traceback may print them


def test_what_is_wrong_is_raised_when_it_starts(tiny: sphynx.Compiled, authority: Path, tmp_path: Path) -> None:
    with pytest.raises(sphynx.InputError, match="HOST:PORT"):
        sphynx.Server(tiny, keys=authority / "server", listen="7443")
    with pytest.raises(sphynx.InputError, match="no client would accept"):
        sphynx.Server(tiny, keys=authority / "alice", listen="127.0.0.1:0", state=tmp_path).start()
    with pytest.raises(sphynx.ConnectionLostError, match="no connection"):
        sphynx.Client("127.0.0.1:1", keys=authority / "alice", state=tmp_path / "client", wait_s=0).infer(pixels(0))


def test_four_lines_without_torch_ask_a_server(server: sphynx.Server, authority: Path, tmp_path: Path) -> None:
    Image.fromarray(pixels(4)[0]).save(tmp_path / "cat.png")
    lines = [
        "import sphynx",
        f"with sphynx.Client({server.address!r}, keys={str(authority / 'alice')!r}, state='bundles') as client:",
        "    answer = client.infer('cat.png')",
        "    print(answer.label, answer.probability)",
    ]
    without = "import sys; sys.modules['torch'] = None"
    ran = subprocess.run(
        [sys.executable, "-c", "\n".join([without, *lines])], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split()[0] in ("cat", "dog", "bird")
