"""Writes a share in percent."""

from __future__ import annotations


def percent_text(share: float) -> str:
    """Returns a share in percent. Only a share of exactly 0 or 1 is written as such."""
    if share in (0, 1):
        return f"{share:.0%}".replace("%", " %")
    percent = 100 * share
    if percent < 0.01:
        return "< 0.01 %"
    return f"{min(percent, 99.9):.2g} %" if percent < 10 else f"{min(percent, 99.9):.3g} %"
