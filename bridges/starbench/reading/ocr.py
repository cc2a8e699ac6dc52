"""Reads crops of texts by rapidocr, whose models come in its wheel."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from bridges.starbench.pictures.sprites import Picture
from rollout.errors import missing_extra

_TALL = 48  # pixels, the height that its model reads at
_MARGIN = 6


class Ocr:
    """A reader of any text in a crop, for screens that are not ours.

    Args:
        threads: of the processor; one inside workers, which share the cores.

    Raises:
        ConfigError: the extra is not installed.
    """

    def __init__(self, threads: int = 1) -> None:
        try:
            from rapidocr import RapidOCR  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise missing_extra("reading texts by OCR", "starbench") from error
        self._engine: Any = RapidOCR(
            params={
                "Global.log_level": "critical",
                "EngineConfig.onnxruntime.intra_op_num_threads": threads,
                "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            }
        )

    def read(self, part: Picture) -> str:
        """Returns the text in a crop of one line, (h, w, 3) in RGB; empty if there is none."""
        line = cleaned(part)
        if line is None:
            return ""
        found = self._engine(line, use_det=False, use_cls=False, use_rec=True)
        return str(found.txts[0]).strip() if found is not None and found.txts else ""


def cleaned(part: Picture) -> Picture | None:
    """Returns a crop as black text on white, as wide as the text; None if there is none."""
    light = part.max(axis=2).astype(np.float32)
    low, high = float(np.median(light)), float(np.partition(light, -8, axis=None)[-8])
    if high - low < 40:
        return None
    ink = np.clip((light - low) / (high - low) * 1.3 - 0.3, 0, 1)  # without dim scenery
    columns = np.flatnonzero(ink.max(axis=0) > 0.5)
    left, right = max(0, columns[0] - _MARGIN), columns[-1] + 1 + _MARGIN
    ink = ink[:, left:right]
    scale = _TALL / ink.shape[0]
    wide = max(_TALL, round(ink.shape[1] * scale))
    line = cv2.resize(255 - 255 * ink, (wide, _TALL), interpolation=cv2.INTER_CUBIC)
    grey = np.clip(line, 0, 255).astype(np.uint8)
    return np.repeat(grey[..., None], 3, axis=2)


def folded(text: str) -> str:
    """Returns a text without case and spaces, which OCR gets wrong."""
    return "".join(text.split()).casefold()
