"""Errors: what failed, where, and the remedy. Every failure a user can act on is a SphynxError, and all kinds are here.

Texts name parameters as Python does, in backticks: `relu_budget`, `seeds=3`. The command line writes them as flags.

SphynxError
  InputError             what was given cannot be used: a file, a value, a budget
    OpenSizesError       ... since a file leaves sizes of its images open, and nobody gave them
    NothingToRunError    ... so that no row of an experiment could be run
    OtherFormatError     ... since another version of sphynx wrote it
  MissingPartError       an optional part of the installation is needed and absent
  InterruptedWorkError   the user stopped the work; it is saved
  DivergedError          a training's loss is no longer finite
  ConnectionLostError    the other party went away, fell silent or is not understood
    HandshakeError       ... before there was a connection: keys, or something that is not TLS 1.3
    NobodyListensError   ... or was not there: its port refuses
    OtherVersionError    ... or speaks another version of the protocol
  FailedCheckError       a client failed a check: it departed from the protocol, or is broken
    InconsistentOtError  ... of its oblivious transfers
  PeerGaveUpError        the other party ended the conversation and said why
  RefusedError           a server does not grant a request
  BundleRefusedError     a bundle may not be used
    BundleGoneError      ... since somebody else was faster
  StoreFullError         the bundles' folder has reached its quota
  ShareUsedUpError       one client's part of it is used up
  DiskError              something could not be written, mostly because the disk is full
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

# From a clone: on PyPI `sphynx` is another project's name. Parts that are a single package are named by that one.
INSTALL_DESIGN = "pip install '.[design]' in a clone of Sphynx"


class SphynxError(Exception):
    """Something failed while running. `remedy` says what the user can do about it.

    >>> try:
    ...     sphynx.load_network("runs/nothing")
    ... except sphynx.SphynxError as error:
    ...     print(error.where)
    runs/nothing
    """

    exit_code = 1

    def __init__(self, what: str, *, remedy: str, where: str = "") -> None:
        self.what = what
        self.where = where
        self.remedy = remedy
        super().__init__(f"{where}: {what}" if where else what)

    def __reduce__(self) -> tuple[Any, ...]:
        """Let it come back from another process with its remedy, whatever its kind is made from."""
        return _made_again, (type(self), self.args, self.__dict__)

    def reword(self, wording: Callable[[str], str]) -> None:
        """Rewrite every text of this error, as the command line does to name flags instead of `parameters`."""
        SphynxError.__init__(self, wording(self.what), where=wording(self.where), remedy=wording(self.remedy))


def _made_again(kind: type[SphynxError], args: tuple[Any, ...], state: dict[str, Any]) -> SphynxError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class InputError(SphynxError):
    """The user gave something that cannot be used: a file, a value, a budget.

    >>> try:
    ...     sphynx.plan("many")
    ... except sphynx.InputError as error:
    ...     print(error.exit_code)
    2
    """

    exit_code = 2


class NothingToRunError(InputError):
    """No row of an experiment could be run, above all because its data are not here."""


class OpenSizesError(InputError):
    """A file leaves sizes of its images open, and nobody gave them. `example` has such sizes."""

    example: tuple[int, ...] = ()


class OtherFormatError(InputError):
    """A bundle of another version of sphynx: of no use to this one."""


class MissingPartError(SphynxError):
    """An optional part of the installation (torch, the compiled core) is needed and absent.

    >>> try:
    ...     sphynx.compile_network("mine.onnx", calibrate="cifar10")  # doctest: +SKIP
    ... except sphynx.MissingPartError as error:  # where onnx is not installed
    ...     print(error.remedy)
    """


class InterruptedWorkError(SphynxError):
    """The user stopped the work; it is saved.

    >>> try:
    ...     sphynx.train_network("design.json", "digits", out="runs/long", resume=True)  # doctest: +SKIP
    ... except sphynx.InterruptedWorkError as error:  # Ctrl-C
    ...     print(error.remedy)
    """

    def __init__(self, *, where: str = "") -> None:
        super().__init__("stopped; the work so far is saved", where=where, remedy="Call it again with `resume=True`.")


class DivergedError(SphynxError):
    """The loss or its gradient is no longer finite."""


class ConnectionLostError(SphynxError):
    """The peer went away, fell silent, or did not speak the protocol: this connection is over, others are not.

    >>> try:
    ...     sphynx.Client("127.0.0.1:9", keys="keys/alice", wait_s=0).infer("digit.png")
    ... except sphynx.ConnectionLostError as error:
    ...     print("ask again later")
    ask again later
    """


class HandshakeError(ConnectionLostError):
    """No connection was made: the peer could not prove who it is, refused our proof, or does not speak TLS 1.3.

    >>> issubclass(sphynx.HandshakeError, sphynx.ConnectionLostError)
    True
    """


class NobodyListensError(ConnectionLostError):
    """The machine is there and its port refuses: the server is down, or just starting."""


class OtherVersionError(ConnectionLostError):
    """The peer speaks another version of the protocol: older or newer software runs there."""


class PeerGaveUpError(SphynxError):
    """The peer ended the conversation and said why.

    >>> try:
    ...     client.infer("digit.png")  # doctest: +SKIP
    ... except sphynx.PeerGaveUpError as error:  # such as a limit that is reached
    ...     print(error)
    """


class FailedCheckError(SphynxError):
    """A client departed from the protocol, or its machine is broken: nothing that is shared with it may be used."""


class InconsistentOtError(FailedCheckError):
    """The peer failed a check of its oblivious transfers. It may know something of the offset: nothing made with that
    offset may be used."""


class RefusedError(SphynxError):
    """The request is well-formed and not granted. The reason is told to the client."""


class BundleRefusedError(SphynxError):
    """This bundle may not be used: burned, expired, unknown, or somebody else's."""


class BundleGoneError(BundleRefusedError):
    """It is not, or no longer, ready: another thread or process may have been faster."""


class StoreFullError(SphynxError):
    """The quota of the folder is used up."""


class ShareUsedUpError(SphynxError):
    """One owner has its share of the folder. The reason says nothing of the others."""


class DiskError(SphynxError):
    """Something could not be written, mostly because the disk is full. It can be tried again."""


def join_faults(faults: Sequence[str]) -> str:
    """One message for all faults of an input, so that they can be fixed in one go."""
    if len(faults) == 1:
        return faults[0]
    return f"{len(faults)} errors:\n" + "\n".join(f"  - {fault}" for fault in faults)
