"""``README.md`` of a dataset, for people and for ``datasets.load_dataset``.

Its first lines say which files are steps and which are episodes, in the format of Hugging Face's
dataset cards; without them, that library tries to read every file of the folder as one table.
"""

from __future__ import annotations

from rollout.data.layout import Layout
from rollout.data.manifest import Manifest
from rollout.data.schema import Column
from rollout.files import write_atomically
from rollout.reports import table
from rollout.signals import shown

_HEAD = """---
configs:
- config_name: default
  default: true
  data_files: data/*.parquet
- config_name: episodes
  data_files: episodes/*.parquet
---
"""
_READ = """## How to read it

```python
from datasets import load_dataset

steps = load_dataset(folder, split="train")
episodes = load_dataset(folder, "episodes", split="train")
```

`folder` is the path of this folder; pyarrow and Polars read `data/*.parquet` directly. Columns
that begin with `final_observation` have a value in the last row of an episode only. Episodes whose
end is `lost` were cut by a failure of the infrastructure and are not results; steps without a
row in `episodes` belong to unfinished episodes.
"""


def write_card(layout: Layout, manifest: Manifest) -> None:
    """Writes ``README.md`` unless there is one: people may edit it."""
    if not layout.card.exists():
        write_atomically(layout.card, shown(card(manifest)))


def card(manifest: Manifest) -> str:
    """Returns the text of the card: game, task, columns with units, and how to read them."""
    task, policy = manifest.task, manifest.policy or "an unnamed policy"
    about = (
        f"Steps of {policy} in the game {manifest.bridge}, one row each, recorded by Gamut. "
        f"Task: {task['name']}. {task['goal']}\n"
    )
    columns = table(("column", "type", "unit", "contents"), map(_row, manifest.columns))
    parts = [f"# {task['name']} in {manifest.bridge}\n", about, _READ, *_pictures(manifest)]
    return _HEAD + "\n".join([*parts, "## Columns\n", columns, ""])


def _row(column: Column) -> tuple[str, ...]:
    kind = f"{column.dtype}{list(column.shape) if column.shape else ''}"
    stored = "" if column.codec.name in ("plain", "list") else f", stored as {column.codec}"
    return f"`{column.name}`", f"{kind}{stored}", column.unit, column.doc


def _pictures(manifest: Manifest) -> list[str]:
    """How columns are decoded that are stored as bytes; an example of each kind."""
    found: dict[str, str] = {}
    for column in manifest.columns:
        if not column.nullable and column.codec.is_image:
            found.setdefault("image", _image_code(column))
        elif not column.nullable and column.codec.name == "raw":
            found.setdefault("raw", _raw_code(column))
    if not found:
        return []
    code = "\n".join(found.values())
    return [
        "## Images and arrays\n\n"
        "Images and larger arrays are stored as bytes; the table of the columns says how.\n\n"
        f"```python\nimport cv2\nimport numpy as np\n\nstep = steps[0]\n{code}```\n"
    ]


def _image_code(column: Column) -> str:
    channels = column.shape[2] if len(column.shape) == 3 else 1
    lines = [
        f'data = np.frombuffer(step["{column.name}"], np.uint8)',
        f"image = cv2.imdecode(data, cv2.IMREAD_{'UNCHANGED' if channels == 4 else 'COLOR'})",
    ]
    if channels == 1:
        lines[1] = "image = cv2.imdecode(data, cv2.IMREAD_GRAYSCALE)"
    else:
        order = "BGRA2RGBA" if channels == 4 else "BGR2RGB"
        lines.append(f"image = cv2.cvtColor(image, cv2.COLOR_{order})  # OpenCV reads BGR")
    return "".join(f"{line}\n" for line in lines)


def _raw_code(column: Column) -> str:
    shape = ", ".join(map(str, column.shape))
    return f'array = np.frombuffer(step["{column.name}"], "{column.dtype}").reshape({shape})\n'
