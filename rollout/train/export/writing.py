"""Writes the network of a checkpoint as a folder that needs neither Gamut nor its checkpoint."""

from __future__ import annotations

import contextlib
import copy
import json
import logging
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import torch
from torch import Tensor

from rollout.api import Array, Columns, Start, State, allocate
from rollout.errors import ConfigError, missing_extra
from rollout.files import remote
from rollout.train.checkpoint import Checkpoint, find_checkpoint
from rollout.train.export.card import card, config_of
from rollout.train.export.network import ACTION, MEMORY, NEXT, OUTPUTS, VALUE, ExportedNetwork
from rollout.train.export.rows import Rows, rows_for, run_of
from rollout.train.history import best_checkpoint
from rollout.train.network import Deciding
from rollout.train.playing import network_of, policy_of

Format: TypeAlias = Literal["torch", "onnx"]
FORMATS: tuple[Format, ...] = get_args(Format)
FILES: Mapping[Format, str] = {"torch": "network.pt2", "onnx": "network.onnx"}
TOLERANCE = 1e-4
"""Largest difference of a number from that of the original, as a share of 1 + its size."""
_EXAMPLE_ROWS = 3  # a size that torch.export does not take for a constant, as it does 0 and 1

Played: TypeAlias = Callable[[Sequence[Array]], Sequence[Array]]
"""An exported network: arrays in the order of its inputs to those of its outputs."""


@dataclass(frozen=True)
class Exported:
    """An export that has passed its check.

    Attributes:
        folder: the folder.
        difference: the largest difference from the original, as a share of 1 + its size.
        rows: number of observations on which they were compared.
        source: where these come from.
    """

    folder: Path
    difference: float
    rows: int
    source: str


def export(
    run: Path | str,
    format: Format,  # noqa: A002 - as its option
    output: Path | str | None = None,
    *,
    best: bool = False,
) -> Exported:
    """Writes the network of a run as a folder, and compares it with the original.

    Args:
        run: a run directory, or one of its checkpoints.
        format: ``torch`` for a program of ``torch.export``, or ``onnx``.
        output: the folder; None for ``export-FORMAT`` in the run directory, or beside a checkpoint
            without a run. It must not exist, or be empty.
        best: take the checkpoint with the best validation instead of the newest.

    Raises:
        CheckpointError: there is no checkpoint, or it is damaged.
        ConfigError: the policy has no network, the network uses what the format does not have,
            the folder is not empty, a package is missing, or the two differ.
    """
    named = Path(run).expanduser()
    checkpoint = (best_checkpoint if best else find_checkpoint)(named)
    policy = policy_of(checkpoint)
    network = network_of(policy, checkpoint)
    if not isinstance(network, Deciding):
        raise ConfigError(
            f"the network {type(network).__name__} of the policy {checkpoint.policy[0]} cannot be "
            f"exported: expected the methods decide() and describe_outputs() "
            f"(rollout.train.network.Deciding)"
        )
    if format == "onnx":
        _require_onnx()
    place = run_of(checkpoint)
    if why := remote(str(output or "")):
        raise ConfigError(f"--output: {why}")
    folder = Path(output).expanduser().resolve() if output else place / f"export-{format}"
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} exists and is not empty; name another with --output")
    module = ExportedNetwork(_plain(network), checkpoint)
    rows = rows_for(checkpoint, place, policy)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Renamed once it is complete and right, so that no folder has half an export.
    begun = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        played = (_to_torch if format == "torch" else _to_onnx)(module, checkpoint, begun)
        difference = _largest_difference(module, policy, rows, played)
        about = config_of(checkpoint, module, FILES[format])
        about["check"] = {"rows": rows.count, "observations": rows.source, "difference": difference}
        (begun / "config.json").write_text(json.dumps(about, indent=1) + "\n")
        (begun / "README.md").write_text(card(about, checkpoint, place, format))
        begun.chmod(0o755)
        if folder.exists():
            folder.rmdir()
        begun.rename(folder)
    finally:
        shutil.rmtree(begun, ignore_errors=True)
    return Exported(folder, difference, rows.count, rows.source)


def _plain(network: Any) -> Any:
    """Returns a copy that shares nothing, in the usual order of memory, and without gradients."""
    copied = copy.deepcopy(network).cpu().float().eval().requires_grad_(requires_grad=False)
    for parameter in copied.parameters():
        parameter.data = parameter.data.clone(memory_format=torch.contiguous_format)
    return copied


def _require_onnx() -> None:
    try:
        import onnx  # noqa: F401, PLC0415 - an extra
        import onnxruntime  # noqa: F401, PLC0415 - likewise
        import onnxscript  # noqa: F401, PLC0415 - likewise
    except ImportError as error:
        raise missing_extra("gamut export --onnx", "export") from error


def _examples(module: ExportedNetwork, checkpoint: Checkpoint) -> tuple[Tensor, ...]:
    """Returns inputs of a few rows."""
    columns = allocate(checkpoint.observation_space, _EXAMPLE_ROWS)
    memory = np.zeros((_EXAMPLE_ROWS, module.network.memory_size), np.float32)
    arrays = [columns.get(name, memory) for name in module.inputs]
    return tuple(torch.from_numpy(array) for array in arrays)


def _program(module: ExportedNetwork, checkpoint: Checkpoint) -> torch.export.ExportedProgram:
    inputs = _examples(module, checkpoint)
    batch = torch.export.Dim("batch", min=1)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            return torch.export.export(
                module, inputs, dynamic_shapes=(tuple({0: batch} for _ in inputs),)
            )
    except Exception as error:  # of many kinds, with pages of text
        raise ConfigError(
            f"the network {type(module.network).__name__} cannot be exported: torch.export fails "
            f"with {type(error).__name__}: {_first_line(error)}"
        ) from error


def _to_torch(module: ExportedNetwork, checkpoint: Checkpoint, folder: Path) -> Played:
    path = folder / FILES["torch"]
    torch.export.save(_program(module, checkpoint), path)
    loaded = torch.export.load(path).module()

    def played(arrays: Sequence[Array]) -> Sequence[Array]:
        with torch.no_grad():
            found = loaded(*(torch.from_numpy(array) for array in arrays))
        return [tensor.numpy() for tensor in found]

    return played


def _to_onnx(module: ExportedNetwork, checkpoint: Checkpoint, folder: Path) -> Played:
    import onnxruntime  # noqa: PLC0415 - an extra

    program, path = _program(module, checkpoint), folder / FILES["onnx"]
    try:
        with warnings.catch_warnings(), _quiet():
            warnings.simplefilter("ignore")
            made = torch.onnx.export(
                program,
                input_names=module.inputs,
                output_names=module.outputs,
                verbose=False,
                dynamo=True,
            )
            assert made is not None  # it is None for a file alone
            made.save(path, external_data=False)
    except Exception as error:
        raise ConfigError(
            f"the network {type(module.network).__name__} cannot be written as ONNX: "
            f"{_first_line(_cause(error))}; export it with --torch, or leave out what ONNX does "
            f"not have"
        ) from error
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    used = {each.name for each in session.get_inputs()}

    def played(arrays: Sequence[Array]) -> Sequence[Array]:
        given = dict(zip(module.inputs, arrays, strict=True))
        found = session.run(module.outputs, {k: v for k, v in given.items() if k in used})
        return [np.asarray(array) for array in found]

    return played


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppresses what the exporter logs about operators of packages that are not installed."""
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _cause(error: BaseException) -> BaseException:
    """Returns the error that began it: the exporter's own ones repeat it in pages."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _largest_difference(module: ExportedNetwork, policy: Any, rows: Rows, played: Played) -> float:
    """Returns the largest difference of an export from the original.

    Raises:
        ConfigError: it is too large, or an action differs.
    """
    largest, memory = 0.0, Columns()
    for batch in rows.batches:
        count = len(next(iter(batch.values())))
        if not memory or len(next(iter(memory.values()))) != count:
            memory = policy.initial_memory([Start(State(0, {}), seed=n) for n in range(count)])
        arrays = [
            memory[name.removeprefix(MEMORY)] if name.startswith(MEMORY) else batch[name]
            for name in module.inputs
        ]
        found = dict(zip(module.outputs, played(arrays), strict=True))
        decision = policy.act(batch, memory, details=None, explore=False)
        wanted = _wanted(module, arrays)
        wanted |= {ACTION + key: array for key, array in decision.actions.items()}
        if VALUE in decision.extras:
            wanted[VALUE] = decision.extras[VALUE]
        found |= _without_ties(module.network, found, wanted)
        memory = dict(decision.memory)
        for key in module.network.memory_keys:
            wanted[NEXT + MEMORY + key] = memory[key]
        largest = max(largest, *(_difference(n, found, wanted, rows) for n in module.outputs))
    return largest


def _wanted(module: ExportedNetwork, arrays: Sequence[Array]) -> dict[str, Array]:
    """Returns what the module itself computes, before it was exported."""
    with torch.no_grad():
        found = module(*(torch.from_numpy(array) for array in arrays))
    return dict(zip(module.outputs, (tensor.numpy() for tensor in found), strict=True))


def _without_ties(
    network: Any, found: Mapping[str, Array], wanted: Mapping[str, Array]
) -> dict[str, Array]:
    """Returns actions that are those of the original where both are as likely, up to rounding."""
    actions = {name: array for name, array in found.items() if name.startswith(ACTION)}
    different = [
        (array != wanted[name]).reshape(len(array), -1).any(1)
        for name, array in actions.items()
        if array.dtype.kind in "iub"
    ]
    if not np.any(different):
        return {}
    distribution = network.distribution(torch.from_numpy(wanted[OUTPUTS]))
    likely = [
        distribution.log_prob(
            network.layout.encode({name.removeprefix(ACTION): each[name] for name in actions})
        ).numpy()
        for each in (found, wanted)
    ]
    tied = np.abs(likely[0] - likely[1]) <= TOLERANCE
    return {
        name: np.where(tied.reshape(-1, *[1] * (array.ndim - 1)), wanted[name], array)
        for name, array in actions.items()
        if array.dtype.kind in "iub"
    }


def _difference(
    name: str, found: Mapping[str, Array], wanted: Mapping[str, Array], rows: Rows
) -> float:
    one, other = found[name], wanted[name]
    if one.shape != other.shape:
        raise ConfigError(
            f"the export gives {name} of the shape {list(one.shape)}, the original of "
            f"{list(other.shape)}; please report this"
        )
    if one.dtype.kind in "iub" and np.array_equal(one, other):
        return 0.0
    apart = np.abs(one.astype(np.float64) - other.astype(np.float64))
    apart /= 1.0 + np.abs(other.astype(np.float64))
    most = float(apart.max(initial=0.0))
    if not most <= TOLERANCE:
        raise ConfigError(
            f"the export differs from the original: {name} by {most:.3g} of 1 + its size on "
            f"observations {rows.source}, and at most {TOLERANCE:g} is rounding; nothing was "
            f"written"
        )
    return most
