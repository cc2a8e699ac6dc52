"""Exports a trained network for programs without Gamut: ``torch.export`` or ONNX, with a card.

See docs/export.md.
"""

from rollout.train.export.writing import FORMATS, Exported, Format, export

__all__ = ["FORMATS", "Exported", "Format", "export"]
