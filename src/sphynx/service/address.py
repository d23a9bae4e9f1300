"""The address of a server, and how long to wait for it: sets up connections."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass

from sphynx.errors import ConnectionLostError, NobodyListensError
from sphynx.program.cost.link import Link
from sphynx.service.tls import TlsStream


@dataclass(frozen=True)
class Address:
    host: str  # as the server's certificate names it
    port: int
    ip: str  # the one to use of a host that has several
    connect_s: float
    timeout_s: float
    link: Link | None = None  # a slower one to emulate, for benchmarks

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def connect(self, context: ssl.SSLContext) -> TlsStream:
        try:
            sock = socket.create_connection((self.ip, self.port), timeout=self.connect_s)
        except OSError as error:
            kind = NobodyListensError if isinstance(error, ConnectionRefusedError) else ConnectionLostError
            raise kind(
                f"no connection ({error.strerror or error})",
                where=str(self),
                remedy="Check the address, and that the server runs.",
            ) from None
        try:
            return TlsStream.connect(
                sock,
                context,
                self.host,
                handshake_s=self.connect_s,
                timeout_s=self.timeout_s,
                link=self.link,
                where=str(self),
            )
        except BaseException:
            sock.close()
            raise
