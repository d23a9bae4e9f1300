"""How fast this machine is at what private inference needs: measured once, in a few seconds, and kept in the cache."""

from __future__ import annotations

import tempfile
from pathlib import Path

from sphynx.program.cost.kept_rates import keep_rates, kept_rates
from sphynx.program.cost.rates import Rates


def machine_rates(*, recalibrate: bool = False) -> Rates:
    """The channel's are measured over mutual TLS, with keys for the occasion."""
    rates = None if recalibrate else kept_rates()
    if rates is None:
        from sphynx.bench.calibrate import measure_rates
        from sphynx.service.local import make_local_keys  # what was measured before needs no `cryptography`

        with tempfile.TemporaryDirectory(prefix="sphynx-rates-") as folder:
            rates = measure_rates(make_local_keys(Path(folder) / "keys").open_channel)
        keep_rates(rates)
    return rates
