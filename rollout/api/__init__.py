"""The interfaces of Gamut: bridge, policy, evaluator, algorithm, recorder, states.

``docs/glossary.md`` defines the terms. The most important ones: a *bridge* launches *instances*,
the running copies of a game. An instance has *slots*, one per agent, which step together; their
number is its *width*. An *episode* goes from a *start* (state and seed) to an end: *terminated*,
*truncated* or *lost*. A *fragment* is consecutive steps of one instance, as columns of shape
``(T, B, ...)``.

This package imports numpy, gymnasium and the standard library only, and starts nothing.
"""

from rollout.api.algorithm import (
    Algorithm,
    GroupAlgorithm,
    Learner,
    LearnsFrom,
    PlayedEpisode,
    Progress,
)
from rollout.api.bridge import (
    NOTICE,
    Bridge,
    BridgeSpec,
    ColumnSpec,
    CommonNoise,
    Deadlines,
    Frame,
    Instance,
    Resources,
    Snapshots,
    Start,
    Trial,
    check_slots,
)
from rollout.api.calls import CALLS, CALLS_SPEC, NO_USAGE, Call, Usage, read_calls
from rollout.api.exporter import Exporter, ReadsBack
from rollout.api.fragment import EpisodeResult, Fragment, Loss, Recorder
from rollout.api.importer import Flaw, Importer, SourceEpisode, SourceSpec
from rollout.api.line_process import LineProcess
from rollout.api.options import NamedCode, NamesCode, option
from rollout.api.permutation import Permutation
from rollout.api.pictures import is_picture, pixels
from rollout.api.policy import (
    Concurrent,
    Decision,
    KeepsFiles,
    Policy,
    PolicyRecipe,
    Remembering,
    Reporting,
    Trainable,
    calls_of,
    figures_of,
    keeps_files,
    trials_of,
    waits_for_person,
)
from rollout.api.sets import Splits, StateSet
from rollout.api.spaces import (
    ACTION,
    MASK,
    OBSERVATION,
    AnyText,
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
from rollout.api.task import Evaluator, EvaluatorRecipe, Limits, Outcome, Task, Verdict
from rollout.api.types import Array, Columns, Details, clean_text, clean_texts

__all__ = [
    "ACTION",
    "CALLS",
    "CALLS_SPEC",
    "MASK",
    "NOTICE",
    "NO_USAGE",
    "OBSERVATION",
    "Algorithm",
    "AnyText",
    "Array",
    "Bridge",
    "BridgeSpec",
    "Call",
    "ColumnSpec",
    "Columns",
    "CommonNoise",
    "Concurrent",
    "Deadlines",
    "Decision",
    "Details",
    "EpisodeResult",
    "Evaluator",
    "EvaluatorRecipe",
    "Exporter",
    "Factor",
    "FlatSpace",
    "Flaw",
    "Fragment",
    "Frame",
    "GroupAlgorithm",
    "Importer",
    "Instance",
    "KeepsFiles",
    "Learner",
    "LearnsFrom",
    "Limits",
    "LineProcess",
    "Loss",
    "NamedCode",
    "NamesCode",
    "Outcome",
    "Permutation",
    "PlayedEpisode",
    "Policy",
    "PolicyRecipe",
    "Progress",
    "ReadsBack",
    "Recorder",
    "Remembering",
    "Reporting",
    "Resources",
    "Snapshots",
    "SourceEpisode",
    "SourceSpec",
    "Splits",
    "Start",
    "State",
    "StateSet",
    "StateSpace",
    "Task",
    "Trainable",
    "Trial",
    "Usage",
    "Verdict",
    "allocate",
    "calls_of",
    "check_columns",
    "check_slots",
    "clean_text",
    "clean_texts",
    "factor_from_data",
    "figures_of",
    "flatten_space",
    "is_fixed",
    "is_picture",
    "keeps_files",
    "leaf_dtype",
    "leaf_shape",
    "option",
    "pixels",
    "read_calls",
    "sample",
    "trials_of",
    "waits_for_person",
]
