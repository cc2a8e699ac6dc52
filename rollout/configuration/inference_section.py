"""The section that says where policies decide."""

from __future__ import annotations

from pydantic import field_validator

from rollout.configuration.sections import Section, key


class InferenceConfig(Section):
    """Where policies decide: beside the games, or in actors of their own; see docs/inference.md."""

    actors: int = key(
        0,
        "Actors that decide for all games together; 0 lets every process that plays have a policy "
        "of its own.",
        unit="actors",
        ge=0,
    )
    batch: int = key(64, "Rows at which an actor waits for no more requests.", unit="rows", gt=0)
    wait_ms: float = key(
        5.0, "Longest time a request waits for others to be decided with.", unit="ms", ge=0
    )
    cpus: float = key(
        1.0, "Processors of each; less where the games leave less.", unit="processors", ge=0
    )
    gpus: float = key(0.0, "GPUs of each; a fraction of one may be shared.", unit="GPUs", ge=0)
    deadline_s: float = key(
        300.0,
        "Deadline for a decision by any actor; after half of it, the request goes to another actor "
        "and one that hangs is replaced.",
        unit="s",
        gt=0,
    )
    restarts: int = key(
        5,
        "Failures of one inference actor within host.restart_window_s after which it is replaced; "
        "one more gives it up.",
        unit="restarts",
        ge=0,
    )

    @property
    def patience_s(self) -> float:
        """Seconds one actor may take: half the deadline, so that there is time for another."""
        return self.deadline_s / 2

    @field_validator("gpus")
    @classmethod
    def _whole(cls, gpus: float) -> float:
        if gpus > 1 and gpus != int(gpus):
            raise ValueError(f"expected a fraction of one GPU or whole GPUs, got {gpus:g}")
        return gpus
