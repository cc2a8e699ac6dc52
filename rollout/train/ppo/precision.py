"""Whether a learner computes in bfloat16."""

from __future__ import annotations

import logging

import torch

log = logging.getLogger(__name__)


def has_bfloat16(device: torch.device) -> bool:
    """Returns whether a device computes in bfloat16 in hardware."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    # avx512_bf16 and amx_bf16 of x86, bf16 of ARM.
    return any(has for name, has in torch.cpu.get_capabilities().items() if name.endswith("bf16"))


def uses_bfloat16(precision: str, device: torch.device) -> bool:
    """Returns whether a learner on a device computes in bfloat16.

    Warns if bfloat16 was requested and the device emulates it: on such a processor convolutions
    were 13 times slower in bfloat16 than in float32.

    Args:
        precision: ``auto``, ``float32`` or ``bfloat16``.
        device: device of the network.
    """
    if precision == "float32":
        return False
    hardware = has_bfloat16(device)
    if precision == "bfloat16":
        if not hardware:
            log.warning(
                "precision: bfloat16, and the %s that learns has no hardware for it, which makes "
                "updates many times slower; use auto or float32",
                "GPU" if device.type == "cuda" else "processor",
            )
        return True
    log.info("precision: auto chose %s", "bfloat16" if hardware else "float32")
    return hardware
