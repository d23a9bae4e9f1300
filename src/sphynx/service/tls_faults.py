"""Why there is no TLS connection, and what to do about it.

The remedies are a client's: a server logs the reason alone.
"""

from __future__ import annotations

import ssl

from sphynx.errors import HandshakeError

USUAL_REMEDY = "Check that both sides have unexpired keys of the same authority, each for its part: sphynx keys --help."
_OTHER_NAME = (
    "Connect to a name that the server's keys were signed for, or sign them for this one: sphynx keys sign --help."
)
_OTHER_AUTHORITY = "Check the address, and use keys that the authority of the server's keys has signed."
_NOBODY_WE_KNOW = "Check the address and the port: a program other than a Sphynx server seems to listen there."
_SILENT = "Check the address and the port; if they are right the server may be overloaded: try again later."
_NEW_KEYS = "Ask the server's operator to sign new keys (sphynx keys request NAME)."

# By OpenSSL's X509_V_ERR_..., of the server's certificate.
_SERVERS_KEYS = {
    9: "Check the clocks of both machines.",  # CERT_NOT_YET_VALID
    10: "Ask the server's operator to renew its keys, or check this machine's clock.",  # CERT_HAS_EXPIRED
    18: _OTHER_AUTHORITY,  # DEPTH_ZERO_SELF_SIGNED_CERT
    19: _OTHER_AUTHORITY,  # SELF_SIGNED_CERT_IN_CHAIN
    20: _OTHER_AUTHORITY,  # UNABLE_TO_GET_ISSUER_CERT_LOCALLY
    21: _OTHER_AUTHORITY,  # UNABLE_TO_VERIFY_LEAF_SIGNATURE
    23: "Stop using this server, and contact its operator.",  # CERT_REVOKED
    62: _OTHER_NAME,  # HOSTNAME_MISMATCH
    64: _OTHER_NAME,  # IP_ADDRESS_MISMATCH
}
# By the server's alert, of ours. OpenSSL sends "certificate expired" for an overdue list of revoked keys as well.
_OUR_KEYS = {
    "certificate revoked": _NEW_KEYS,
    "certificate expired": "Ask the server's operator: your keys have expired, or its own list of revoked keys has.",
    "unknown ca": _OTHER_AUTHORITY,
    "protocol version": _NOBODY_WE_KNOW,
    "handshake failure": _NOBODY_WE_KNOW,
}
_NOT_TLS = ("wrong version number", "http request", "packet length too long", "unexpected message")


def handshake_error(error: OSError, where: str) -> HandshakeError:
    """Explain a failed handshake; `where` is the peer as the user knows it."""
    what, remedy = _explain(error)
    return HandshakeError(what, where=where, remedy=remedy)


def reason_of(error: ssl.SSLError) -> str:
    """Say why: 'certificate verify failed: certificate has expired', 'the peer refused: certificate revoked'."""
    words = _words(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{words}: {error.verify_message}"
    if words in _NOT_TLS:
        return f"the peer does not speak TLS ({words})"
    _, found, alert = words.partition(" alert ")
    return f"the peer refused: {alert}" if found else words


def _explain(error: OSError) -> tuple[str, str]:
    if isinstance(error, TimeoutError):
        return "the peer did not finish the TLS handshake in time", _SILENT
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError | ConnectionResetError | BrokenPipeError):
        return "the peer closed the connection during the TLS handshake", _SILENT
    if not isinstance(error, ssl.SSLError):
        return error.strerror or str(error), USUAL_REMEDY
    if isinstance(error, ssl.SSLCertVerificationError):
        return reason_of(error), _SERVERS_KEYS.get(error.verify_code, USUAL_REMEDY)
    words = _words(error)
    if words in _NOT_TLS:
        return reason_of(error), _NOBODY_WE_KNOW
    return reason_of(error), _OUR_KEYS.get(words.partition(" alert ")[2], USUAL_REMEDY)


def _words(error: ssl.SSLError) -> str:
    return (error.reason or "a TLS error").lower().replace("_", " ")
