"""Addresses of this machine."""

from __future__ import annotations

import ipaddress


def is_loopback(address: str) -> bool:
    """Returns whether an address, or the name localhost, is of this machine only."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
