"""The client's own record of private answers: one page to print or to keep.

It says which network answered, when, at what cost, what each side learned, and what that rests on. It is what this
client saw and states: nobody signs it, so that it proves nothing to others.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Self

from sphynx.program.ir import Program
from sphynx.program.security import Security
from sphynx.service.prediction import Prediction
from sphynx.units import class_text, percent, seconds_text
from sphynx.version import __version__
from sphynx.zoo.shipped import warning_of

TITLE = "Record of a private inference"
BACKEND_NAMES = {"gmw": "GMW", "gc": "garbled circuits"}
CLIENT_LEARNED = (
    "The answers above, and the public program: the network's layers, sizes, scales and class names. Nothing else "
    "about the weights."
)
SERVER_LEARNED = (
    "That these questions came, when, from which address and certificate, for which network, with which number of "
    "pictures and which way of computing ReLUs. Nothing about a picture, and not the answer."
)
ASSUMED: dict[Security, str] = {
    "semi-honest": "Both sides ran Sphynx unchanged. A server that did not could have read the picture; a "
    "client that did not could have read the weights.",
    "malicious-client": "The server ran Sphynx unchanged: one that did not could have read the picture. The client was "
    "checked, as this mode does.",
}
ALSO_ASSUMED = (
    "The machines of both sides were under their owners' control, and the cryptography holds. Nobody outside the "
    "project has audited the software. Answers tell something about the network themselves."
)
OWN_RECORD = (
    "This is the client's own record of what it did and saw. It is not signed by the server and is no proof to others. "
    "It contains the answers: keep it as you keep them."
)
STYLE = """
:root { color-scheme: light; }
body { margin: 0 auto; padding: 1.5rem; max-width: 46rem; background: #fff; color: #1c2430;
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; } h2 { font-size: 1.05rem; margin: 1.3rem 0 .3rem; } p { margin: .3rem 0; }
dl { display: grid; grid-template-columns: minmax(6rem, auto) 1fr; gap: .2rem 1rem; margin: .6rem 0; }
dt { color: #55606f; } dd { margin: 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid #d5dce6; vertical-align: top; }
.note { border-top: 2px solid #1c2430; margin-top: 1.4rem; padding-top: .6rem; }
@media (max-width: 30rem) {
  body { padding: 1rem; } dl { grid-template-columns: 1fr; } dd { margin-bottom: .4rem; }
  table, tbody, tr, td { display: block; } thead { display: none; } td { border: 0; padding: 0; }
  tr { border-bottom: 1px solid #d5dce6; padding: .3rem 0; }
}
@page { margin: 15mm; } @media print { body { padding: 0; max-width: none; font-size: 11pt; } }
"""
STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()  # for a content security policy


@dataclass(frozen=True)
class RecordedAnswer:
    """One question and what was learned and spent for it."""

    picture: str  # its file, or what it is called
    answer: str
    backend: str
    online_seconds: float
    online_bytes: int
    online_rounds: int
    offline_seconds: float
    offline_bytes: int

    @classmethod
    def of(cls, picture: str, prediction: Prediction) -> Self:
        return cls(
            picture,
            _words(prediction),
            BACKEND_NAMES[prediction.backend],
            prediction.online_seconds,
            prediction.online_bytes,
            prediction.online_rounds,
            prediction.offline_seconds,
            prediction.offline_bytes,
        )


@dataclass(frozen=True)
class AnswerRecord:
    """Answers of one network by one server.

    >>> client = sphynx.Client("127.0.0.1:9", keys="keys/alice")  # doctest: +SKIP
    >>> AnswerRecord.of(client.program, client.server, client.security, [("scan.png", answer)])  # doctest: +SKIP
    """

    made: datetime
    network: str
    program_hash: str
    server: str
    security: Security
    answers: tuple[RecordedAnswer, ...]

    @classmethod
    def of(cls, program: Program, server: str, security: Security, answered: Sequence[tuple[str, Prediction]]) -> Self:
        answers = tuple(RecordedAnswer.of(picture, prediction) for picture, prediction in answered)
        made = datetime.now(UTC).replace(microsecond=0)
        return cls(made, program.name or "network", program.content_hash, server, security, answers)

    def to_html(self) -> str:
        """Write it as one self-contained page, without a script."""
        facts = (
            ("Date", f"{self.made:%Y-%m-%d %H:%M:%S} UTC"),
            ("Network", self.network),
            *((("Warning", warning),) if (warning := warning_of(self.network)) else ()),
            ("SHA-256 of the program", self.program_hash),
            ("Server", self.server),
            ("Connection", "TLS 1.3, certificates on both sides"),
            ("Protection", self.security),
            ("Software", f"Sphynx {__version__}"),
        )
        rows = "".join(_row("td", _cells(answer)) for answer in self.answers)
        heads = ("picture", "answer", "online", "prepared before", "ReLUs by")
        return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(TITLE)}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{escape(TITLE)}</h1>
<dl>{"".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)}</dl>
<h2>Questions and answers</h2>
<table><thead>{_row("th", heads)}</thead><tbody>{rows}</tbody></table>
<h2>What the client learned</h2>
<p>{escape(CLIENT_LEARNED)}</p>
<h2>What the server learned</h2>
<p>{escape(SERVER_LEARNED)}</p>
<h2>What this rests on</h2>
<p>{escape(ASSUMED[self.security])} {escape(ALSO_ASSUMED)}</p>
<p class="note">{escape(OWN_RECORD)}</p>
</body>
</html>
"""


def _words(prediction: Prediction) -> str:
    if not prediction.has_scores:
        return class_text(prediction.label)
    told = prediction.to_json(1)
    if not told.get("labels"):
        shapes = (f"{name} {' x '.join(map(str, array.shape))}" for name, array in prediction.outputs.items())
        return f"numbers: {', '.join(shapes)}"
    label = class_text(told["labels"][0])
    return f"{label} ({percent(told['probabilities'][0], 1)})" if told.get("probabilities") else label


def _cells(answer: RecordedAnswer) -> tuple[str, ...]:
    return (
        answer.picture,
        answer.answer,
        f"{seconds_text(answer.online_seconds)}, {answer.online_bytes:,} bytes, {answer.online_rounds} rounds",
        f"{seconds_text(answer.offline_seconds)}, {answer.offline_bytes:,} bytes",
        answer.backend,
    )


def _row(kind: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{kind}>{escape(cell)}</{kind}>' for cell in cells)}</tr>"
