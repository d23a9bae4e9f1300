"""`sphynx serve`: private inference for clients with keys."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sphynx.cli import options as opt


def serve(
    compiled: Annotated[
        str, typer.Argument(metavar="DIR", help="A folder made by `sphynx compile`, or a model's name.")
    ],
    keys: Annotated[Path, typer.Option("--keys", help="The server's folder from `sphynx keys issue`.")],
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Address to listen on; port 0 picks a free one.")
    ] = "127.0.0.1:7443",
    state: Annotated[
        Path | None,
        typer.Option(
            "--state", help="Where to keep bundles and their ledger. [default: DIR/bundles, for a model bundles/NAME]"
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            min=1,
            help="How many preparations may run at once, and how many inferences. [default: one per core]",
        ),
    ] = None,
    processes: Annotated[
        int,
        typer.Option(
            "--processes", min=1, max=256, help="Worker processes that share one port and the machine's cores."
        ),
    ] = 1,
    quota: Annotated[str, typer.Option("--quota", help="Disk space for all bundles, such as 500M or 16G.")] = "16G",
    memory: Annotated[
        str, typer.Option("--memory", help="Memory for new bundles, to avoid reading them back.")
    ] = "512M",
    weight_memory: opt.WeightMemory = "",
    bundles_per_client: Annotated[
        int, typer.Option("--pool", min=1, max=256, help="Bundles that one client may keep ready.")
    ] = 16,
    images_per_hour: Annotated[
        int,
        typer.Option(
            "--hourly", min=1, help="Images per hour for each client, counted at preparation and at inference."
        ),
    ] = 3600,
    connections: Annotated[
        int, typer.Option("--connections", min=1, help="Clients that may be connected at once.")
    ] = 64,
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds to wait for a message.")] = 60.0,
    handshake: Annotated[
        float, typer.Option("--handshake", min=0.1, help="Seconds to wait for the TLS handshake.")
    ] = 10.0,
    idle: Annotated[float, typer.Option("--idle", min=0.1, help="Seconds that a client may be idle.")] = 600.0,
    grace: Annotated[
        float, typer.Option("--grace", min=0, help="Seconds that running work may take after Ctrl-C.")
    ] = 30.0,
    proxy_from: Annotated[
        list[str] | None,
        typer.Option(
            "--proxy-from",
            metavar="NETWORK",
            help="Addresses of load balancers, such as 10.0.0.0/8; they must send PROXY protocol v2. Repeatable.",
        ),
    ] = None,
    trust_state: Annotated[
        bool,
        typer.Option("--trust-state", help="Keep bundles after a restart of the machine or a move of their folder."),
    ] = False,
    link: Annotated[
        str,
        typer.Option("--link", help="Delay every answer as on lan, wan or 20ms,200mbit, for trials on one machine."),
    ] = "",
    metrics_port: Annotated[
        int,
        typer.Option(
            "--metrics-port", min=0, max=65535, help="Port for /metrics and /healthz on 127.0.0.1; 0 picks a free one."
        ),
    ] = 9464,
) -> None:
    """Serve a compiled program. Logs one JSON object per line on stderr; Ctrl-C lets running inferences finish.

    Examples:

      sphynx serve compiled/digits --keys keys/server

      sphynx serve sphynx-cifar100-25k --keys keys/server

      sphynx serve compiled/digits --keys keys/server --listen 0.0.0.0:7443 --workers 8 --quota 100G --pool 32

      sphynx serve compiled/digits --keys keys/server --processes 8
    """
    from sphynx.api.serving import Server
    from sphynx.service.admission import Limits

    defaults = Limits()
    limits = Limits(
        workers=workers or defaults.workers,
        quota_bytes=opt.parse_bytes(quota, "--quota"),
        memory_bytes=opt.parse_bytes(memory, "--memory"),
        weight_memory_bytes=opt.parse_memory(weight_memory, "--weight-memory"),
        bundles_per_client=bundles_per_client,
        images_per_hour=images_per_hour,
        connections=connections,
        handshake_s=handshake,
        message_s=timeout,
        queue_s=timeout / 2,
        idle_s=idle,
        grace_s=grace,
    )
    Server(
        compiled,
        keys=keys,
        listen=listen,
        state=state,
        limits=limits,
        metrics_port=metrics_port,
        link=link or None,
        proxy_from=proxy_from or (),
        trust_state=trust_state,
        processes=processes,
        log=sys.stderr,
    ).serve()
