"""Private inference against the integer oracle, bit for bit; refusals; what the parties see and keep."""

import os
import resource
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.compiler.frontend.onnx_models import Maker, write
from tests.protocol.parties import run_parties
from tests.protocol.random_programs import Case, random_case, random_public_case

from sphynx.compiler.frontend.onnx.file import read_network
from sphynx.compiler.measure import measure
from sphynx.compiler.precision import Precision
from sphynx.compiler.quantise import quantise
from sphynx.core import Prg, garbling, ot, rlwe
from sphynx.core.bits import unpack_ring
from sphynx.core.gmw import Material
from sphynx.errors import InputError, SphynxError
from sphynx.program.backends import Backend
from sphynx.program.interpret import interpret
from sphynx.program.ir import INPUT
from sphynx.protocol import transport
from sphynx.protocol.bundle import Bundle, identify, load_bundle
from sphynx.protocol.channel import Channel, local_pair
from sphynx.protocol.gmw_material import ServerMaterial
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.protocol.ots import ServerOts, add_up_client, set_up_client


def ask(
    case: Case, backend: Backend, *, through: Callable[[Bundle], Bundle] = lambda bundle: bundle, **pair: int
) -> None:
    """One private inference of the case's images, held against the oracle; `through` is what happens to bundles."""
    model, batch, bundle_id = ServerModel(case.program, case.weights), len(case.pixels), os.urandom(16)

    def server(channel: Channel) -> None:
        party = InferenceServer(model, channel)
        party.infer(through(party.prepare(bundle_id, backend, batch)))

    def client(channel: Channel) -> np.ndarray:
        party = InferenceClient(case.program, channel)
        return party.infer(through(party.prepare(bundle_id, backend, batch)), case.pixels)

    _, logits = run_parties(server, client, **pair)
    np.testing.assert_array_equal(logits, interpret(case.program, case.weights, case.pixels))


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    backend=st.sampled_from(["gc", "gmw"]),
    images=st.integers(1, 2),
    with_square=st.booleans(),
)
def test_private_is_the_oracle(seed: int, backend: Backend, images: int, with_square: bool) -> None:
    ask(random_case(seed, images, with_square=with_square), backend)


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    backend=st.sampled_from(["gc", "gmw"]),
    images=st.integers(1, 2),
    with_square=st.booleans(),
)
def test_private_sums_and_truncations_are_the_oracle(
    seed: int, backend: Backend, images: int, with_square: bool
) -> None:
    ask(random_public_case(seed, images, with_square=with_square), backend)


@pytest.mark.parametrize("backend", ["gc", "gmw"])
def test_a_compiled_network_with_all_that_compares(backend: Backend, tmp_path: Path) -> None:
    """Max pools, a clip, a leaky ReLU, a residual sum and a depthwise convolution, as the compiler makes them."""
    make = Maker(("n", 2, 8, 8))
    x = make.node("MaxPool", make.node("Relu", make.conv("x", 2, 4)), kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    six = [make.constant(np.array(bound, np.float32)) for bound in (0, 6)]
    long = make.conv(make.node("Clip", make.conv(x, 4, 4, 1, group=4), *six), 4, 4, pads=[1, 1, 1, 1])
    x = make.node("LeakyRelu", make.node("Add", long, x), alpha=0.125)
    x = make.node("MaxPool", make.conv(x, 4, 4, 1), kernel_shape=[2, 2])
    network = read_network(write(make.model(make.dense(make.node("Flatten", x), 16, 3)), tmp_path / "network.onnx"))
    pixels = np.random.default_rng(0).integers(0, 256, (20, 2, 8, 8), np.uint8)
    made = quantise(measure(network.trace((0.5,) * 2, (0.25,) * 2), pixels), Precision(8, 10, 7))
    assert made.program.comparison_count
    ask(Case(made.program, made.weights, pixels[:2]), backend)


@pytest.mark.parametrize("ring_bits", [32, 33, 48, 64])
def test_every_kind_of_ring(ring_bits: int) -> None:
    """32 and 33: the two element types; 48 and 64: the other two RLWE parameter sets."""
    ask(random_case(5, 2, ring_bits), "gmw")


@pytest.mark.parametrize("backend", ["gc", "gmw"])
def test_a_batch_that_is_larger_than_the_channel_holds(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Masks, ReLU requests and square requests are sent ahead: if both parties waited for room, nothing would move."""
    monkeypatch.setattr(transport, "SOCKET_BUFFER_BYTES", 1 << 14)
    ask(random_case(0, 32, with_square=True), backend, max_pending_bytes=1 << 14, timeout_s=10)


@pytest.mark.parametrize("backend", ["gc", "gmw"])
def test_bundles_survive_a_file(backend: Backend, tmp_path: Path) -> None:
    def stored(bundle: Bundle) -> Bundle:
        path = tmp_path / bundle.role
        bundle.save(path)
        assert path.stat().st_mode & 0o777 == 0o600
        return load_bundle(path)

    ask(random_case(1), backend, through=stored)


def prepared(case: Case, backend: Backend = "gmw", times: int = 1) -> list[tuple[Bundle, Bundle]]:
    """(server's half, client's half) of bundles made on one connection."""
    model = ServerModel(case.program, case.weights)
    ids = [os.urandom(16) for _ in range(times)]

    def server(channel: Channel) -> list[Bundle]:
        party = InferenceServer(model, channel)
        return [party.prepare(bundle_id, backend, 1) for bundle_id in ids]

    def client(channel: Channel) -> list[Bundle]:
        party = InferenceClient(case.program, channel)
        return [party.prepare(bundle_id, backend, 1) for bundle_id in ids]

    return list(zip(*run_parties(server, client), strict=True))


def test_every_bundle_has_a_generator_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the operating system gave every generator the same seed, all bundles of a connection would be alike."""
    for side in ("server", "client"):
        monkeypatch.setattr(
            f"sphynx.protocol.inference_{side}.Prg", lambda: Prg.fixed_seed_for_tests(b"always the same.")
        )
    (server_one, client_one), (server_two, client_two) = prepared(random_case(2), "gc", times=2)
    masks = [name for name in client_one.arrays if name.startswith("mask/")]
    shares = [name for name in server_one.arrays if name.startswith("share/")]
    assert masks and all(np.array_equal(client_one.arrays[name], client_two.arrays[name]) for name in masks)
    assert shares and all(np.array_equal(server_one.arrays[name], server_two.arrays[name]) for name in shares)


def test_set_up_happens_once_and_nothing_repeats() -> None:
    """Two bundles of one connection share no mask, no share, no material and no byte of an upload."""
    case = random_case(2)
    model = ServerModel(case.program, case.weights)
    received: list[list[bytes]] = []
    ids = [os.urandom(16) for _ in range(2)]

    def server(channel: Channel) -> list[Bundle]:
        party = InferenceServer(model, channel)
        receive, bundles = channel.receive, []

        def kept(size: int, *, timeout_s: float | None = None) -> bytearray:
            message = receive(size, timeout_s=timeout_s)
            received[-1].append(bytes(message))
            return message

        channel.receive = kept
        for bundle_id in ids:
            received.append([])
            bundles.append(party.prepare(bundle_id, "gmw", 1))
        return bundles

    def client(channel: Channel) -> list[Bundle]:
        party = InferenceClient(case.program, channel)
        bundles = [party.prepare(ids[0], "gmw", 1)]
        assert channel.take_record().total("setup").bytes > 0
        bundles.append(party.prepare(ids[1], "gmw", 1))
        assert channel.take_record().total("setup").bytes == 0
        return bundles

    for first, second in run_parties(server, client):
        pairs = [(first.arrays[name], second.arrays[name]) for name in first.arrays]
        assert all(not np.array_equal(a, b) for a, b in pairs if a.nbytes >= 16)
    long = [{message for message in messages if len(message) >= 16} for messages in received]
    assert len(long[1]) > 5 and not long[0] & long[1]
    seeds = [{message[:16] for message in messages} for messages in long]
    assert not seeds[0] & seeds[1]


def balanced(values: np.ndarray, width: int) -> bool:
    """Every bit is as often 0 as 1, within six standard deviations: one false alarm in 10^7 runs."""
    bits = (values.reshape(-1, 1).astype(np.uint64) >> np.arange(width, dtype=np.uint64)) & np.uint64(1)
    return bool(np.abs(bits.mean(axis=0) - 0.5).max() * 2 * np.sqrt(values.size) < 6)


def test_what_a_party_holds_and_receives_is_uniform() -> None:
    """Over many bundles for one dark image: the first message that the server receives online, x - r, and either
    party's share of a linear map. Unmasked, the high bits of all of them would be constant."""
    case, times = random_case(4), 24
    case.pixels[:] = 7
    model, width, size = ServerModel(case.program, case.weights), case.program.ring_bits, case.program.image.size
    ids = [os.urandom(16) for _ in range(times)]

    def server(channel: Channel) -> list[tuple[Bundle, np.ndarray]]:
        party, receive, views = InferenceServer(model, channel), channel.receive, []
        for bundle_id in ids:
            bundle, received = party.prepare(bundle_id, "gmw", 1), list[bytearray]()

            def kept(size: int, *, timeout_s: float | None = None, received: list[bytearray] = received) -> bytearray:
                received.append(receive(size, timeout_s=timeout_s))
                return received[-1]

            channel.receive = kept
            party.infer(bundle)
            channel.receive = receive
            views.append((bundle, unpack_ring(np.frombuffer(received[0], np.uint8), width, size)))
        return views

    def client(channel: Channel) -> list[Bundle]:
        party, bundles = InferenceClient(case.program, channel), []
        for bundle_id in ids:
            bundles.append(party.prepare(bundle_id, "gmw", 1))
            party.infer(bundles[-1], case.pixels)
        return bundles

    served, asked = run_parties(server, client)
    seen = np.stack([view for _, view in served])
    assert balanced(seen, width)
    masks = np.stack([half.arrays[f"mask/{INPUT}"].reshape(-1) for half in asked])
    np.testing.assert_array_equal((seen + masks) & np.uint64(2**width - 1), 7)
    assert balanced(np.stack([half.arrays["share/first"] for half, _ in served]), width)
    assert balanced(np.stack([half.arrays["share/first/relu"] for half in asked]), width)


def refused(case: Case, server_half: Bundle, client_half: Bundle) -> list[str]:
    """Collect what each side says of a bundle, before a byte is sent."""
    left, right = local_pair(timeout_s=5)
    said = []
    for act in (
        lambda: InferenceServer(ServerModel(case.program, case.weights), left).infer(server_half),
        lambda: InferenceClient(case.program, right).infer(client_half, case.pixels),
    ):
        with pytest.raises(InputError) as refusal:
            act()
        said.append(str(refusal.value))
    assert left.record.total().bytes == right.record.total().bytes == 0
    left.close()
    right.close()
    return said


def test_wrong_bundles_are_refused() -> None:
    case = random_case(6)
    ((served, asked),) = prepared(case)
    assert all("program" in said for said in refused(random_case(7), served, asked))
    assert all("half" in said for said in refused(case, asked, served))
    for batch in (0, 2**20):
        with pytest.raises(InputError, match="batch"):
            replace(asked, batch=batch)
    wider = [replace(half, batch=2) for half in (served, asked)]
    assert all("missing or not" in said or "images" in said for said in refused(case, *wider))
    emptied = [replace(half, arrays={}) for half in (served, asked)]
    assert all("missing" in said for said in refused(case, *emptied))


@pytest.mark.parametrize("change", ["dtype", "shape", "batch"])
def test_wrong_pixels_are_refused(change: str) -> None:
    case = random_case(8)
    ((_, asked),) = prepared(case)
    pixels = {
        "dtype": case.pixels.astype(np.int64),
        "shape": case.pixels[:, :, :-1],
        "batch": np.repeat(case.pixels, 2, axis=0),
    }[change]
    _, right = local_pair(timeout_s=5)
    with pytest.raises(InputError, match="images"):
        InferenceClient(case.program, right).infer(asked, pixels)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    ((_, asked),) = prepared(random_case(9))
    path = tmp_path / "bundle"
    asked.save(path)
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[: len(whole) // 2], b"", b"{}", whole[:-1] + bytes([whole[-1] ^ 1])):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match="damaged"):
            load_bundle(path)
    swapped = whole.replace(b'"role":"client"', b'"role":"server"')
    assert swapped != whole
    path.write_bytes(swapped)
    with pytest.raises(InputError, match="hash"):
        load_bundle(path)
    path.write_bytes(whole)
    path.chmod(0o644)
    with pytest.raises(InputError, match="other users may read"):
        load_bundle(path)
    with pytest.raises(InputError, match="no such bundle"):
        load_bundle(tmp_path / "none")


def test_a_file_that_is_deleted_while_it_is_looked_at_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when another process of this client has just used the bundle."""
    ((_, asked),) = prepared(random_case(9))
    path, look = tmp_path / "bundle", Path.stat
    asked.save(path)

    def look_and_lose(self: Path, **options: bool) -> os.stat_result:
        found = look(self, **options)
        self.unlink()
        return found

    monkeypatch.setattr(Path, "stat", look_and_lose)
    with pytest.raises(InputError):
        load_bundle(path)


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    """As on a full disk: here the limit on the size of a file."""
    bundle = Bundle(os.urandom(16), "0" * 64, "client", "gmw", 1, {"share/a": np.zeros(100_000, np.uint64)})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        with pytest.raises(InputError, match="cannot be written"):
            bundle.save(tmp_path / "bundle")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert not list(tmp_path.iterdir())


def test_no_secret_is_printed_by_mistake() -> None:
    """A log or a traceback shows at most names and sizes of a bundle, the OT sessions and materials."""
    secret = np.full((1, 2), 987_654_321, np.uint64)
    bundle = Bundle(os.urandom(16), "0" * 64, "client", "gmw", 1, {"share/a": secret})
    material = Material(secret, secret, secret, secret, secret)
    sessions = ServerOts(None, None, secret, None)  # type: ignore[arg-type]
    for holder in (bundle, material, sessions, ServerMaterial(material, secret, secret)):
        assert "987654321" not in repr(holder)
    for pair in (ot.PadPair(secret, secret), ot.Triples(secret, secret, secret), garbling.Garbled(secret, secret)):
        assert "987654321" not in repr(pair)


@pytest.mark.parametrize("hostile", ["public key", "upload"])
def test_hostile_bytes_end_the_session_by_name(hostile: str) -> None:
    """Messages of the right length with residues outside their primes."""
    case = random_case(3)
    model = ServerModel(case.program, case.weights)
    params, plan = model.plan.params, model.plan

    def server(channel: Channel) -> None:
        with pytest.raises(SphynxError, match=f"{hostile} is malformed"):
            InferenceServer(model, channel).prepare(bytes(16), "gmw", 1)

    def client(channel: Channel) -> None:
        if hostile == "public key":
            channel.send(b"\xff" * params.public_key_bytes)
            return
        channel.send(rlwe.LinearClient(params, Prg()).public_key())
        bundle = Bundle(bytes(16), case.program.content_hash, "client", "gmw", 1, {})
        add_up_client(channel, set_up_client(channel, Prg(), identify(bundle)))
        channel.send(b"\xff" * plan.upload_bytes(plan.distinct_uploads[0], 1))

    run_parties(server, client)
