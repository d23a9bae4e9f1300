"""Commands as processes of their own that need not import everything anew: importing torch takes longer than most.

A parent process without threads imports what the commands use, then forks for each of them. `Warm.programs` is a folder
of small programs, `sphynx` and `python`, which hand it their words, folder, environment and streams, pass on SIGINT and
SIGTERM, and end as the command ends. `Warm.start` gives the command's own process, to be signalled and killed. What is
about imports needs a process that started cold.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import gc
import io
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import typer.main

ROOT = Path(__file__).parents[1]
IMPORTED = (
    "torch.utils.data",
    "torch._dynamo",  # by the first optimizer
    "sklearn.datasets",
    "safetensors.torch",
    "cryptography.x509",
    "PIL.Image",
    "rich.table",
    "sphynx.api.designing",
    "sphynx.api.searching",
    "sphynx.api.training",
    "sphynx.api.networks",
    "sphynx.api.asking",
    "sphynx.api.serving",
    "sphynx.compiler.compile",
    "sphynx.service.hosting",
    "sphynx.service.client",
    "sphynx.service.keys",
)
SPHYNX = "sphynx"
PROGRAM = """#!{python} -SE
import array, json, os, signal, socket, sys
link = socket.socket(socket.AF_UNIX)
link.connect({address!r})
asked = json.dumps([[*{words!r}, *sys.argv[1:]], os.getcwd(), dict(os.environ)]).encode()
asked = len(asked).to_bytes(4, "big") + asked
sent = link.sendmsg([asked], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
link.sendall(asked[sent:])
command = int.from_bytes(link.recv(4), "big")
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _frame: os.kill(command, number))
code = int.from_bytes(link.recv(4), "big", signed=True)
sys.exit(code if code >= 0 else 128 - code)
"""


@cache
def built_once(app: typer.Typer) -> Callable[..., Any]:
    """All verbs and their options, always the same: typer makes them anew for each command, in a fifth of a second."""
    return typer.main.get_command(app)


class Warm:
    """The parent process, until `close`."""

    def __init__(self, folder: Path) -> None:
        self.programs = folder / "bin"
        self.programs.mkdir()
        self._sockets = tempfile.TemporaryDirectory(
            prefix="sphynx-warm-"
        )  # a socket's address has 100 characters at most
        self._address = address = str(Path(self._sockets.name) / "commands")
        for name, words in (("python", []), (SPHYNX, [SPHYNX])):
            text = PROGRAM.format(python=sys.executable, address=address, words=words)
            (self.programs / name).write_text(text)
            (self.programs / name).chmod(0o755)
        path = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        self.environment = {
            **os.environ,
            "PATH": path,
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
            "OMP_NUM_THREADS": "1",
        }
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(address)
            listener.listen(64)
            self._parent = subprocess.Popen(
                [sys.executable, __file__, str(listener.fileno())],
                env=self.environment,
                pass_fds=[listener.fileno()],
                stdin=subprocess.PIPE,
            )

    def sphynx(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = [str(self.programs / SPHYNX), *arguments]
        return subprocess.run(command, cwd=cwd, env=self.environment, capture_output=True, text=True, check=False)

    def start(self, *words: str, cwd: Path, env: dict[str, str]) -> Command:
        """Start a command, such as `-m MODULE`, whose process the caller may signal and kill."""
        return Command(self._address, list(words), cwd, env)

    def close(self) -> None:
        self._parent.communicate()  # it ends when its input does
        self._sockets.cleanup()


class Command:
    """A process that the parent forked, used like a `Popen` with its stderr in a pipe."""

    def __init__(self, address: str, words: list[str], cwd: Path, env: dict[str, str]) -> None:
        self._link = socket.socket(socket.AF_UNIX)
        self._link.connect(address)
        read, write = os.pipe()
        with open(os.devnull, "r+b") as nothing:  # noqa: PTH123 - not a file to read
            streams = array.array("i", [nothing.fileno(), nothing.fileno(), write])
            _ask(self._link, words, cwd, env, streams)
        os.close(write)
        self.stderr = os.fdopen(read)
        self.pid = int.from_bytes(self._link.recv(4), "big")
        self.returncode: int | None = None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def poll(self) -> int | None:
        return self._end(0.0)

    def wait(self, timeout: float) -> int:
        code = self._end(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout)
        return code

    def _end(self, timeout: float) -> int | None:
        if self.returncode is None and select.select([self._link], [], [], timeout)[0]:
            self.returncode = int.from_bytes(self._link.recv(4), "big", signed=True)
            self._link.close()
        return self.returncode


def _ask(link: socket.socket, words: list[str], cwd: Path, env: dict[str, str], streams: array.array[int]) -> None:
    asked = json.dumps([words, str(cwd), env]).encode()
    asked = len(asked).to_bytes(4, "big") + asked
    sent = link.sendmsg([asked], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
    link.sendall(asked[sent:])


def main(descriptor: int) -> None:
    """Forks until its input ends. Whatever is forked for a command runs it; the parent tells its end to who asked."""
    for name in IMPORTED:
        import_module(name)
    from sphynx.cli.main import app
    from sphynx.design import timing

    timing.ENOUGH_SECONDS = 0.0  # forecasts of the fewest calls
    typer.Typer.__call__ = lambda app, *words, **options: built_once(app)(*words, **options)
    with contextlib.redirect_stdout(io.StringIO()):  # a first command, which imports what every command does
        built_once(app)(["recipes", "--json"], standalone_mode=False)
    gc.freeze()
    listener = socket.socket(fileno=descriptor)
    ended, end = socket.socketpair()
    for one in (ended, end):
        one.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(end.fileno(), warn_on_full_buffer=False)
    running: dict[int, socket.socket] = {}  # commands, and the programs that wait for them
    while True:
        ready, _, _ = select.select([listener, sys.stdin, ended], [], [])
        if ended in ready:
            ended.recv(1 << 10)
            _tell_ends(running)
        if sys.stdin in ready:
            return
        if listener in ready:
            link = listener.accept()[0]
            asked = _read(link)
            command = os.fork() if asked is not None else None
            if asked is not None and not command:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for one in (listener, ended, end, link, *running.values()):
                    one.close()
                os._exit(_run(asked.enter()))
            if asked is None or command is None:
                link.close()
                continue
            for stream in asked.streams:
                os.close(stream)
            running[command] = link
            with contextlib.suppress(OSError):  # whoever asked has ended
                link.sendall(command.to_bytes(4, "big"))


def _tell_ends(running: dict[int, socket.socket]) -> None:
    while running:
        command, status = os.waitpid(-1, os.WNOHANG)
        if not command:
            return
        code = os.waitstatus_to_exitcode(status)
        with running.pop(command) as link, contextlib.suppress(OSError):
            link.sendall(code.to_bytes(4, "big", signed=True))


class Asked(NamedTuple):
    """A command, with the folder, environment and streams of the program that asked for it."""

    words: list[str]
    folder: str
    environment: dict[str, str]
    streams: array.array[int]

    def enter(self) -> list[str]:
        """Make this process the command's; return its words."""
        for number, stream in enumerate(self.streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.environment)
        encoding = self.environment.get("PYTHONIOENCODING", "utf-8")
        sys.stdout = os.fdopen(1, "w", encoding=encoding, closefd=False)
        sys.stderr = os.fdopen(2, "w", 1, encoding=encoding, errors="backslashreplace", closefd=False)
        return self.words


def _read(link: socket.socket) -> Asked | None:
    """Return what is asked for, or None if whoever asked has ended already."""
    raw, rights, _, _ = link.recvmsg(1 << 20, socket.CMSG_SPACE(3 * 4))
    while len(raw) < 4 or len(raw) < 4 + int.from_bytes(raw[:4], "big"):
        more = link.recv(1 << 20)
        if not more:
            return None
        raw += more
    words, folder, environment = json.loads(raw[4:])
    return Asked(words, folder, environment, array.array("i", rights[0][2]))


def _run(words: list[str]) -> int:
    """The exit code. Its end is made by hand: to take apart all that was imported takes a second."""
    try:
        _run_main(words)
        code: object = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    if not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _run_main(words: list[str]) -> None:
    sys.path[0] = ""
    kind, *rest = words
    if kind == SPHYNX:
        from sphynx.cli.main import main as sphynx  # as the installed program does it

        sys.argv = words
        sphynx()
    elif kind == "-m":
        sys.argv = rest
        sys.modules.pop(rest[0], None)
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv, sys.path[0] = words, str(Path(kind).resolve().parent)
        runpy.run_path(kind, run_name="__main__")


if __name__ == "__main__":
    main(int(sys.argv[1]))
