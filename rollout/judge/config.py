"""The configuration of a judgement."""

from __future__ import annotations

from typing import ClassVar, Literal

from rollout.config import RunConfig, key
from rollout.configuration.sections import Section
from rollout.models.sections import Endpoint, RunLimits, Sampling


class FramesConfig(Section):
    """Choice of the frames of an episode that a judge sees."""

    column: str = key("", "Image column; empty for the only one.")
    budget: int = key(
        8,
        "Most frames of an episode: the first, the last, those after rewards and progress, and "
        "others between them.",
        unit="frames",
        gt=1,
    )
    every: int | None = key(
        None,
        "One frame of every so many steps and the last one, instead of those of events; fewer, at "
        "even distances, where these are more than budget. MCU: every=30, budget=60.",
        unit="steps",
        gt=0,
    )
    scale: int = key(1, "Each pixel becomes a square of this side.", unit="pixels", gt=0)


class JudgeConfig(RunConfig):
    """Rates recorded episodes with a model and reports agreement with given ratings."""

    may_change: ClassVar[tuple[str, ...]] = (
        *RunConfig.may_change,
        *("endpoint", "limits", "prices", "ratings", "measure"),
    )
    may_grow: ClassVar[tuple[str, ...]] = ("episodes", "pairs")
    estimates: ClassVar[bool] = True

    dataset: str = key(
        ...,
        "Dataset of the episodes, or the run directory that recorded it; or a folder of videos, "
        "TASK_NUMBER.mp4 or TASK/NUMBER.mp4.",
    )
    rubric: str = key("play", "Name of a rubric of Gamut, or a YAML file.")
    criteria: str = key(
        "",
        "Criteria of the task, for rubrics that have them by task: a file, or a folder with a file "
        "for each task (.yaml, or .txt as in MCU); generate lets the model write them; empty for "
        "those of the task.",
    )
    reference: str = key(
        "",
        "Picture of what is to be matched, e.g. a blueprint, shown first; empty for the task's "
        "own, if it has one.",
    )
    mode: Literal["absolute", "pairwise"] = key(
        "absolute",
        "absolute: a score for each criterion. pairwise: which of two episodes is better, asked in "
        "both orders; a verdict that changes with the order is a tie.",
    )
    endpoint: Endpoint = key(Endpoint, "Where the model is; as of the policy vlm.")
    model: str = key(..., "Name of the model at the endpoint.")
    sampling: Sampling = key(Sampling, "How verdicts are drawn.")
    limits: RunLimits = key(RunLimits, "When the run pauses.")
    prices: str = key("", "File of prices; empty for Gamut's.")
    frames: FramesConfig = key(FramesConfig, "Which frames the judge sees.")
    episodes: int | None = key(
        None, "The first episodes only; null for all with a result.", unit="episodes", gt=0
    )
    filter: str = key(
        "", "Episodes to judge, e.g. success and return > 5 (docs/dataset.md); empty for all."
    )
    pairs: int = key(100, "Pairs of episodes, drawn at random.", unit="pairs", gt=0)
    repeats: int = key(
        1, "Times each is judged; more than one shows how the verdicts spread.", unit="times", gt=0
    )
    reparse: int = key(2, "Times an unusable verdict is asked for again.", unit="times", ge=0)
    seed: int = key(0, "Seed of the pairs.", ge=0)
    ratings: str = key(
        "",
        "Ratings that the verdicts are compared with: a CSV file with the columns episode, "
        "criterion, score and perhaps rater; the ratings.jsonl of gamut rate, or its folder; or a "
        "folder of rating files of MCU.",
    )
    measure: Literal["", "progress", "return", "success"] = key(
        "",
        "Compares the criterion `progress`, or the preference in pairs, with this measure of the "
        "machine.",
    )
    allow_same_model: bool = key(
        False, "Whether a model may judge episodes that it has played itself."
    )
