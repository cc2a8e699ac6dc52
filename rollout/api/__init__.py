"""The seams of Gamut, and the one meaning of each of its words.

Game: a title and its rules. *Bridge*: the recipe that makes running copies of one game and speaks
its protocol; cheap, picklable, importing it starts nothing. *Instance*: one running copy (a
process, a server with bots, or an in-process batch of worlds). *Slot*: one agent's seat in an
instance; an instance has a *width*, the number of slots that step together.

*Factor*: a named dimension of a game's starting conditions, with finite values. *State space*:
the product of the factors; an *index* is a state. *Part*: train, validation, test or extrapolation
states, which never overlap. *State set*: a frozen, named subset of a part.

*Task*: goal text, state space, evaluator and limits. *Evaluator*: turns what happened into reward,
progress and *outcome* (success or failure). *Start*: the state and seed of one episode.

*Episode end* is exactly one of *terminated* (the game or the task decided), *truncated* (a limit)
and *lost* (our machinery failed: never a result, always counted, retried on a fresh instance).

*Step*: one action. *Tick*: game time. *Update*: one learner iteration. *Version*: the number of
the weights, rising by one. *Frame*: what the slots show after a step. *Fragment*: consecutive
steps of one instance as columns ``(T, B, ...)``. *Recorder*: keeps fragments.

Everything here is numpy, gymnasium and the standard library; nothing here starts anything.
"""

from rollout.api.bridge import (
    NOTICE,
    Bridge,
    BridgeSpec,
    ColumnSpec,
    Deadlines,
    Frame,
    Instance,
    Resources,
    Snapshots,
    Start,
)
from rollout.api.fragment import EpisodeResult, Fragment, Loss
from rollout.api.options import option
from rollout.api.permutation import Permutation
from rollout.api.policy import Decision, Policy, PolicyRecipe, Trainable
from rollout.api.recorder import Recorder
from rollout.api.sets import Splits, StateSet
from rollout.api.spaces import (
    ACTION,
    OBSERVATION,
    FlatSpace,
    allocate,
    check_columns,
    flatten_space,
    is_fixed,
    leaf_dtype,
    leaf_shape,
    sample,
)
from rollout.api.state import Factor, State, StateSpace, factor_from_data
from rollout.api.task import (
    Evaluator,
    EvaluatorRecipe,
    Limits,
    Outcome,
    Task,
    Verdict,
)
from rollout.api.types import Array, Columns, Details

__all__ = [
    "ACTION",
    "NOTICE",
    "OBSERVATION",
    "Array",
    "Bridge",
    "BridgeSpec",
    "ColumnSpec",
    "Columns",
    "Deadlines",
    "Decision",
    "Details",
    "EpisodeResult",
    "Evaluator",
    "EvaluatorRecipe",
    "Factor",
    "FlatSpace",
    "Fragment",
    "Frame",
    "Instance",
    "Limits",
    "Loss",
    "Outcome",
    "Permutation",
    "Policy",
    "PolicyRecipe",
    "Recorder",
    "Resources",
    "Snapshots",
    "Splits",
    "Start",
    "State",
    "StateSet",
    "StateSpace",
    "Task",
    "Trainable",
    "Verdict",
    "allocate",
    "check_columns",
    "factor_from_data",
    "flatten_space",
    "is_fixed",
    "leaf_dtype",
    "leaf_shape",
    "option",
    "sample",
]
