"""How numbers are written everywhere for people, three digits and a unit or a share in percent, and class names."""

from __future__ import annotations

_LARGE = ((1e9, "G"), (1e6, "M"), (1e3, "K"))


def short_number(value: float) -> str:
    """200K, 1.5M, 0.25"""
    for factor, suffix in _LARGE:
        if abs(value) >= factor:
            return f"{value / factor:.4g}{suffix}"
    return f"{value:.4g}"


def bytes_text(value: float) -> str:
    """23.1 MB, 747 kB, 12 B"""
    return f"{_prefixed(value)}B"


def rate_text(bits_per_s: float) -> str:
    """1 Gbit/s, 100 Mbit/s"""
    return f"{_prefixed(bits_per_s)}bit/s"


def seconds_text(value: float) -> str:
    """1.16 s, 741 ms, 5 µs"""
    if value >= 1:
        return f"{value:.3g} s"
    return f"{1e3 * value:.3g} ms" if value >= 1e-3 else f"{1e6 * value:.3g} µs"


def _prefixed(value: float) -> str:
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.3g} {prefix}"
    return f"{value:.0f} "


def duration(seconds: float) -> str:
    """1 h 02 min, 3 min 20 s, 4.2 s: of work that people wait for."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def percent(share: float | None, digits: int = 2) -> str:
    """69.28 %, of the share 0.6928"""
    return "-" if share is None else f"{share:.{digits}%}".replace("%", " %")


def class_text(name: str) -> str:
    """pine tree, of the class pine_tree"""
    return name.replace("_", " ").strip() or name
