"""Datasets in the formats of other tools: exporters and importers, each a plug-in of its own.

An exporter (``rollout.api.Exporter``) writes recorded episodes in another format with all that
Gamut knows of them; an importer (``rollout.api.Importer``) reads episodes that others recorded, and
``import_dataset`` makes a dataset of them.
"""

from rollout.data.formats.importing import Imported, import_dataset

__all__ = ["Imported", "import_dataset"]
