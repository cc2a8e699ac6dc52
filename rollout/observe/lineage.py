"""What a run was made from and what it made: datasets, checkpoints and results.

``lineage.jsonl`` has a line for each, in the order in which they were used or made. The mirror of
W&B logs them as artifacts, so that W&B draws the graph from dataset to checkpoint to evaluation.
An artifact is known by its contents: the same dataset or checkpoint is the same artifact in every
run that names it, wherever its files are. Datasets and checkpoints are not uploaded; an artifact
has their digest, and their path in its metadata.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rollout.files import LineFile, open_file, parse_json, read_document, read_lines
from rollout.observe.run_files import RUN, newest_checkpoint, parse, read_about

if TYPE_CHECKING:
    from rollout.data import Dataset

Relation: TypeAlias = Literal["used", "made"]

_CHECKPOINT = "checkpoint.json"
_NAME = re.compile(r"[^\w.-]", re.ASCII)
_SHORT = 12  # characters of a digest in a name

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Artifact:
    """A dataset, a checkpoint (``model``) or the results of a run (``evaluation``).

    Attributes:
        type: what it is.
        name: the same for all states of a growing dataset and all checkpoints of a run.
        digest: SHA-256 of its contents.
        path: where it is on this machine.
        files: files that are small enough to be sent, by their paths.
        about: further facts.
    """

    type: Literal["dataset", "model", "evaluation"]
    name: str
    digest: str
    path: str
    files: Sequence[str] = ()
    about: Mapping[str, str | int | float] = field(default_factory=dict)


@dataclass(frozen=True)
class Results:
    """The results of a run: small files in its directory, by their names."""

    run: Path
    names: Sequence[str]


class Lineage:
    """The file of a run that names what it used and made; the same is named once.

    Nothing here raises: a run is worth more than its lineage.

    Args:
        path: the file; earlier sessions may have written to it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = {(line["relation"], line["name"], line["digest"]) for line in read(path)}

    def add(self, relation: Relation, *sources: object) -> None:
        """Adds what the run used or made.

        Args:
            relation: which of both.
            sources: datasets, recipes of policies, checkpoints or runs with checkpoints by their
                paths, results. A policy without weights has nothing to name.
        """
        for source in sources:
            try:
                if (artifact := artifact_of(source)) is not None:
                    self._write(relation, artifact)
            except Exception as error:  # noqa: BLE001 - see the class: of plug-ins, files, anything
                kind = type(error).__name__
                logger.warning("%s has no line on %r: %s: %s", self._path, source, kind, error)

    def _write(self, relation: Relation, artifact: Artifact) -> None:
        key = (relation, artifact.name, artifact.digest)
        if key in self._known:
            return
        line = json.dumps({"relation": relation, **asdict(artifact)})
        file = LineFile(self._path)
        try:
            file.cut()
            file.append(f"{line}\n")
        finally:
            file.close()
        self._known.add(key)


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the lines of ``lineage.jsonl``; none if there is no file, damaged ones left out."""
    try:
        lines = [raw for raw in read_lines(path) if raw.endswith(b"\n")]
    except OSError:
        return
    for raw in lines:
        line = parse(raw)
        if line is not None and {"relation", "type", "name", "digest"} <= line.keys():
            yield line


def artifact_of(source: object) -> Artifact | None:
    """Returns the artifact of a source, see ``Lineage.add``; None for a policy without weights."""
    from rollout.data import Dataset  # noqa: PLC0415 - Arrow loads slowly

    if isinstance(source, Dataset):
        return dataset_artifact(source)
    if isinstance(source, Results):
        return results_artifact(source)
    if isinstance(source, Path):
        return checkpoint_artifact(source)
    weights = getattr(source, "weights_path", None)  # of a recipe that plays a checkpoint
    if callable(weights):
        return checkpoint_artifact(Path(weights()))
    model = getattr(getattr(source, "local", None), "model", "")  # of a recipe with a local model
    folder = Path(model).expanduser()
    for run in (folder, folder.parent) if model else ():  # the model lies in a folder of the run
        if (run / RUN).is_file():
            return checkpoint_artifact(run)
    return None


def dataset_artifact(dataset: Dataset) -> Artifact:
    """Returns a dataset as it was when it was opened."""
    manifest, counts = dataset.manifest, dataset.counts
    about: dict[str, str | int] = {
        "steps": counts.steps,
        "episodes": counts.terminated + counts.truncated,
    }
    about |= {"task": manifest.task["name"], "bridge": manifest.bridge, "policy": manifest.policy}
    return _artifact("dataset", manifest.run, dataset.digest, dataset.layout.root, about)


def checkpoint_artifact(path: Path) -> Artifact:
    """Returns a checkpoint, by its path, or the newest of a run.

    Raises:
        OSError, ValueError, KeyError: it has no description that can be read.
    """
    newest = newest_checkpoint(path)
    if newest is not None:
        path = path / "checkpoints" / newest[0]
    about: Any = parse_json(read_document(path.expanduser() / _CHECKPOINT))
    digests = about["sha256"]
    # Checkpoints of version 0.1 have no digest of the description itself.
    digest = digests.get(_CHECKPOINT) or digests["weights.pt"]
    facts = {name: about[name] for name in ("update", "env_steps") if name in about}
    facts |= {"policy": about["policy"]["name"], "task": str(about.get("task", ""))}
    return _artifact("model", str(about.get("run_id", "")), digest, path, facts)


def results_artifact(results: Results) -> Artifact:
    """Returns the results of a run."""
    files = [results.run / name for name in results.names]
    digest = hashlib.sha256()
    for file in files:
        with open_file(file) as opened:
            digest.update(hashlib.file_digest(opened, "sha256").digest())
    run_id = read_about(results.run)["run_id"]
    made = _artifact("evaluation", run_id, digest.hexdigest(), results.run, {})
    return replace(made, files=list(map(str, files)))


def _artifact(
    kind: Literal["dataset", "model", "evaluation"],
    run_id: str,
    digest: str,
    path: Path,
    about: Mapping[str, str | int | float],
) -> Artifact:
    name = _NAME.sub("-", f"{kind}-{run_id or digest[:_SHORT]}")[:128]
    return Artifact(kind, name, digest, str(path.resolve()), (), about)


class ArtifactLog:
    """Logs the lines of ``lineage.jsonl`` to a run of W&B, those that were added since.

    Args:
        run: the run of W&B.
        path: the file.
        folder: a folder for the identities of artifacts, which W&B reads later.
    """

    def __init__(self, run: Any, path: Path, folder: Path) -> None:
        self._run, self._path, self._folder = run, path, folder
        self._sent = self._size = 0

    def send(self) -> None:
        """Logs the new lines; one that fails causes a warning only."""
        size = self._path.stat().st_size if self._path.is_file() else 0
        if size == self._size:
            return
        self._size = size
        for line in list(read(self._path))[self._sent :]:
            self._sent += 1
            try:
                self._log(line)
            except Exception as error:  # noqa: BLE001 - W&B's errors have no common base class
                kind = type(error).__name__
                logger.warning("W&B has no artifact %s: %s: %s", line["name"], kind, error)

    def _log(self, line: Mapping[str, Any]) -> None:
        import wandb  # noqa: PLC0415 - optional, and slow to import

        # W&B takes two artifacts for one if they have the same name and files.
        identity = {"type": line["type"], "sha256": line["digest"]}
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / f"{line['digest']}.json"
        file.write_text(json.dumps(identity) + "\n")
        about = {**line.get("about", {}), "path": line.get("path"), "sha256": line["digest"]}
        artifact = wandb.Artifact(line["name"], line["type"], metadata=about)
        kept = {"policy": "immutable", "skip_cache": True}  # not copied to a folder of the user
        artifact.add_file(str(file), name="gamut.json", **kept)
        for path in line.get("files", ()):
            artifact.add_file(path, name=Path(path).name)
        if line["relation"] == "made":
            self._run.log_artifact(artifact)
        elif self._run.offline:
            # use_artifact refuses to work offline; this is what it does with a new artifact.
            self._run._log_artifact(artifact, is_user_created=True, use_after_commit=True)
        else:
            self._run.use_artifact(artifact)
