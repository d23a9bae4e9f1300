"""Every parser of bytes that somebody else wrote. A target takes any bytes: it uses them, or refuses them with one of
`refusals`; whatever else is raised is a bug. `seeds` are good inputs, made by the code that writes them."""

from __future__ import annotations

import atexit
import json
import socket
import ssl
import struct
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.compiler.frontend.export.module import load_module
from sphynx.compiler.frontend.onnx.file import read_network
from sphynx.core import Prg, _native, garbling
from sphynx.errors import SphynxError
from sphynx.program.folder import WEIGHTS, load_program, load_weights, save_program, save_weights
from sphynx.protocol.activations import activation_layers
from sphynx.protocol.bundle import Bundle, load_bundle
from sphynx.protocol.channel import WIRE_VERSION, Channel
from sphynx.protocol.transport import SocketStream
from sphynx.service import keys, session
from sphynx.service.admission import Admission
from sphynx.service.agreement import _read_program
from sphynx.service.calls import CALLS, read_answer, read_call, write_call
from sphynx.service.certificate import Role, why_not
from sphynx.service.credentials import CERTIFICATE
from sphynx.service.ledger import Entry, Ledger
from sphynx.service.metrics import Metrics
from sphynx.service.owner import _Caller
from sphynx.service.proxy_header import FIXED_BYTES, LOCAL, PROXY, SIGNATURE, source_address, variable_bytes
from sphynx.service.revocation import read_revocations
from sphynx.service.settings import Limits
from sphynx.space.design import Design
from sphynx.space.files import load_any_design
from sphynx.space.genotype import Genotype
from sphynx.space.json_file import read_json
from sphynx.space.published_cells import SPHYNX
from sphynx.space.reference import ResNet18Design
from sphynx.space.tally import Shape
from tests.compiler.frontend.onnx_models import joined, plain_cnn, residual
from tests.compiler.frontend.test_hostile_archives import MODEL, members_of, write
from tests.fuzz.picture_target import good_pictures, read_and_cut
from tests.program.programs import gated_program, public_program, random_weights, several_program, small_program

FOLDER = Path(tempfile.mkdtemp(prefix="sphynx-fuzz-"))
CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True)
class Target:
    name: str
    use: Callable[[bytes], object]
    made: Callable[[], list[bytes]]
    refusals: tuple[type[Exception], ...] = (SphynxError,)

    def run(self, data: bytes) -> bool:
        """Return whether it was used; what is neither used nor refused goes on as the exception that it is."""
        try:
            self.use(data)
        except self.refusals:
            return False
        return True

    def seeds(self) -> list[bytes]:
        """Good inputs, and those that were found to matter."""
        folder = CORPUS / self.name
        return self.made() + [file.read_bytes() for file in sorted(folder.glob("*"))]


def _file(data: bytes) -> Path:
    path = FOLDER / "input"
    path.touch(mode=0o600)
    path.write_bytes(data)
    return path


def _frames(data: bytes) -> None:
    """Messages of a size that is due, and of any size; until the stream ends or is refused."""
    ours, theirs = socket.socketpair()
    channel = Channel(SocketStream(ours, timeout_s=5.0))
    try:
        theirs.sendall(data)
        theirs.shutdown(socket.SHUT_WR)
        channel.receive(4)
        while True:
            channel.receive_up_to(1 << 14)
    finally:
        channel.close(wait_s=0)
        theirs.close()


def _proxy_header(data: bytes) -> None:
    fixed = data[:FIXED_BYTES]
    source_address(fixed, data[FIXED_BYTES:][: variable_bytes(fixed)])


def _proxy_headers() -> list[bytes]:
    tlv = b"\4\0\3abc"
    return [
        SIGNATURE + bytes((command, kind)) + (len(addresses) + len(tlv)).to_bytes(2, "big") + addresses + tlv
        for command, kind, addresses in (
            (PROXY, 0x11, bytes(range(12))),
            (PROXY, 0x21, bytes(range(36))),
            (LOCAL, 0, b""),
        )
    ]


def _frame(payload: bytes, kind: int = 0) -> bytes:
    return struct.pack("<2sBBI", b"Sx", WIRE_VERSION, kind, len(payload)) + payload


def _messages() -> list[bytes]:
    nonce = "0123456789abcdef" * 2
    messages: list[session.Message] = [
        session.Hello(session.SERVICE_VERSION, "ab"),
        session.Welcome(session.SERVICE_VERSION, "ab", 10, (nonce, nonce), 3, 16, "malicious-client", 42, 3),
        session.Prepare(3, "gc", 2, nonce),
        session.Prepare(3, "gmw", 1, nonce, down="silent", up="silent"),
        session.Go(nonce, 60.0),
        session.Stored((nonce, nonce)),
        session.Infer(nonce, 4),
        session.Agree((nonce,), 3),
        session.Ping(0, 5),
        session.Bye(),
    ]
    return [json.dumps({"kind": type(m).__name__.lower(), **asdict(m)}).encode() for m in messages]


@cache
def _caller() -> _Caller:
    limits = Limits(workers=2, connections=4, queue_s=1e-3)
    return _Caller(Ledger(Path(tempfile.mkdtemp(dir=FOLDER)) / "ledger"), Admission(limits), Metrics().new_part())


def _worker_call(data: bytes) -> None:
    """Handle a worker's bytes as the process that owns the ledger does. Whatever it understands it answers."""
    name, arguments = read_call(data)
    assert read_call(write_call(name, arguments)) == (name, arguments)
    try:
        read_answer(name, _caller().answer(data))
    except SphynxError as error:
        assert "failed" not in error.what or "(ValueError)" in error.what, error


def _worker_calls() -> list[bytes]:
    """`hello` first: without it the ledger is not asked."""
    entry = Entry(bytes(range(16)), "ab" * 32, "cd" * 32, "gmw", 1, 2e9)
    values: dict[str, Any] = {
        "holder": "0123456789abcdef",
        "holders": ["0123456789abcdef"],
        "values": {("connections_total", (("result", "done"),)): 3, ("unread_bytes", ()): 5.0},
        "entries": [entry],
        "bundle_id": entry.bundle_id,
        "bundle_ids": [entry.bundle_id],
        "most": 3,
        "hourly": None,
        "number": 7,
        "wait_s": 0.0,
        "keep": True,
        "offline_seconds": 0.5,
        **dict.fromkeys(("size_bytes", "offline_bytes", "burned"), 9),
        **{name: getattr(entry, name) for name in ("owner", "program", "backend", "batch")},
    }
    return [write_call(name, {key: values[key] for key in call.parameters}) for name, call in CALLS.items()]


def _designs(data: bytes) -> None:
    file = _file(data)
    try:
        load_any_design(file)
    except SphynxError:
        Genotype.from_json(read_json(file))


def _certificate(data: bytes) -> None:
    reasons = [why_not(data, role) for role in Role]
    if any("cannot be read" in reason for reason in reasons):
        raise ValueError(reasons)


def _certificates() -> list[bytes]:
    folder = Path(tempfile.mkdtemp(dir=FOLDER))
    keys.init(folder)
    made = (keys.issue(folder, "alice"), keys.issue(folder, "server", hosts=["localhost"]))
    return [ssl.PEM_cert_to_DER_cert((one / CERTIFICATE).read_text()) for one in made]


def _described() -> list[object]:
    return [
        SPHYNX.to_json(),
        Design(SPHYNX, 4, 3, (1,), Shape(3, 16, 16), 10).to_json(),
        ResNet18Design().to_json(),
    ]


def _program(data: bytes) -> None:
    """Handle a server's program as a client does before it asks for anything."""
    program = _read_program(data)
    assert program == _read_program(json.dumps(program.to_json()).encode())
    activation_layers(program, 1)


def _program_file(data: bytes) -> None:
    load_program(_file(data))


def _saved(save: Callable[[Path], object], name: str) -> bytes:
    folder = Path(tempfile.mkdtemp(dir=FOLDER))
    save(folder)
    return (folder / name).read_bytes()


def _bundle() -> bytes:
    arrays: dict[str, NDArray[Any]] = {
        "share/first": np.arange(9, dtype=np.uint64).reshape(3, 3),
        "tables 0": np.arange(5, dtype=np.uint8),
    }
    bundle = Bundle(bytes(range(16)), small_program().content_hash, "client", "gmw", 2, arrays)
    return _saved(lambda folder: bundle.save(folder / "one"), "one")


def _bristol(data: bytes) -> None:
    circuit = garbling.Circuit.read_bristol(data.decode("latin-1"))
    assert garbling.Circuit.read_bristol(circuit.write_bristol()).write_bristol() == circuit.write_bristol()


@cache
def _rlwe_parties() -> tuple[_native.rlwe.Params, _native.rlwe.SecretKey, Prg]:
    params, prg = _native.rlwe.Params.for_ring(32), Prg.fixed_seed_for_tests(bytes(16))
    return params, _native.rlwe.SecretKey(params, prg), prg


atexit.register(_rlwe_parties.cache_clear)  # native objects that outlive the interpreter are reported as leaks


def _rlwe(data: bytes) -> None:
    params, secret, _ = _rlwe_parties()
    parsers: tuple[Callable[[], object], ...] = (
        lambda: _native.rlwe.PublicKey(params, data),
        lambda: _native.rlwe.Ciphertexts(params, data, 1),
        lambda: secret.decrypt(data, np.arange(3, dtype=np.uint32), [3], 1, np.empty(3, np.uint64)),
    )
    for parse in parsers:
        try:
            parse()
        except ValueError:
            continue


def _rlwe_wires() -> list[bytes]:
    params, secret, prg = _rlwe_parties()
    upload = secret.encrypt(np.ones((1, params.n), np.uint64), prg)
    weights, public = _native.rlwe.Weights(params, 1, 1, params.n), secret.public_key(prg)
    used, share = np.arange(3, dtype=np.uint32), np.zeros(3, np.uint64)
    key, inputs = _native.rlwe.PublicKey(params, public), [_native.rlwe.Ciphertexts(params, upload, 1)]
    return [public, upload, _native.rlwe.reply(key, weights, inputs, 1, used, [3], prg, share)]


def _network(data: bytes) -> None:
    network = read_network(_file(data))
    channels = network.image.channels
    network.trace((0.5,) * channels, (0.25,) * channels, outline=True)


@cache
def _archive() -> dict[str, bytes]:
    return members_of(FOLDER)


def _exported(data: bytes) -> None:
    """The graph in a .pt2 file whose weights are good; torch takes what the module is made of no further than here."""
    load_module(write(FOLDER / "input.pt2", {**_archive(), MODEL: data}))


def _made_programs() -> list[bytes]:
    programs = (
        small_program(ring_bits=44),
        public_program(),
        gated_program(),
        several_program(),
    )  # a square needs as many
    return [json.dumps(program.to_json()).encode() for program in programs]


TARGETS = {
    target.name: target
    for target in (
        Target("frames", _frames, lambda: [_frame(b"abcd") + _frame(b"{}"), _frame(b"abcd") + _frame(b"no", 1)]),
        Target("session", session.parse, _messages),
        Target("worker-call", _worker_call, _worker_calls, (ValueError,)),
        Target("proxy-header", _proxy_header, _proxy_headers),
        Target("design", _designs, lambda: [json.dumps(design).encode() for design in _described()]),
        Target("program", _program, _made_programs),
        Target(
            "program-file",
            _program_file,
            lambda: [_saved(lambda folder: save_program(folder, small_program()), "program.json")],
        ),
        Target(
            "weights",
            lambda data: load_weights(_file(data), small_program()),
            lambda: [_saved(lambda f: save_weights(f, small_program(), random_weights(small_program())), WEIGHTS)],
        ),
        Target("bundle", lambda data: load_bundle(_file(data)), lambda: [_bundle()]),
        Target("revocation", read_revocations, list, (ValueError,)),
        Target("certificate", _certificate, _certificates, (ValueError,)),
        Target(
            "bristol",
            _bristol,
            lambda: [b"1 3\n2 1 1\n1 1\n\n2 1 0 1 2 AND\n"],
            (ValueError,),
        ),
        Target("rlwe", _rlwe, _rlwe_wires),
        Target(
            "onnx",
            _network,
            lambda: [model().SerializeToString() for model in (plain_cnn, residual, joined)],
        ),
        Target("exported", _exported, lambda: [_archive()[MODEL]]),
        Target("image", read_and_cut, good_pictures),
    )
}
