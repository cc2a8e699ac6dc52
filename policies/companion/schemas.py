"""What a companion perceives, plans and remembers, as strict records of bounded size.

Names and meanings are those of MineNPC-Task (arXiv 2601.05215, sections 3 and 4, appendix).
Records that the paper names but does not define (Inventory, Movement, Entity, Environment,
ChatMessage) and fields marked as ours are our own.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
    model_validator,
)

from rollout.models.chat_api import json_object

Text: TypeAlias = Annotated[str, StringConstraints(max_length=1000)]
Name: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=120)]
Tick: TypeAlias = Annotated[int, Field(ge=0)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]

Intent: TypeAlias = Literal["memory", "conversation", "task", "control"]
Provenance: TypeAlias = Literal["seen", "told", "inferred"]
MemoryKind: TypeAlias = Literal["landmark", "artifact", "preference", "commitment", "breakdown"]
LEAST_SUBTASKS, MOST_SUBTASKS = 3, 5


class Record(BaseModel):
    """A record: unknown keys, values of another type and sizes beyond the bounds are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Position(Record):
    """A place, in blocks: x to the east, y up, z to the south."""

    x: float
    y: float
    z: float


class Inventory(Record):
    """The items of a player: counts by name. Ours."""

    items: dict[Name, Annotated[int, Field(ge=1)]] = Field(default_factory=dict, max_length=64)


class Movement(Record):
    """What an agent is doing. Ours."""

    goal: Text = ""
    state: Literal["still", "running"] = "still"


class Entity(Record):
    """A player, creature or item in sight. Ours."""

    name: Name
    kind: Text = ""
    distance: float = Field(ge=0)
    position: Position
    health: float | None = None


class Environment(Record):
    """The surroundings of an agent. Ours."""

    biome: Text = ""
    weather: Text = ""
    time: int = Field(0, ge=0, description="ticks of the day, 0 sunrise to 23999")


class ChatMessage(Record):
    """A line of the chat. Ours."""

    who: Name
    text: Text
    tick: Tick = 0


class BotState(Record):
    """What an agent knows of itself and its surroundings at one time."""

    time: Tick
    position: Position
    health: int = Field(ge=0, le=40)
    hunger: int = Field(ge=0, le=20)
    nearby_blocks: list[Text] = Field(default_factory=list, max_length=64)
    equipment: list[Text] = Field(default_factory=list, max_length=6)
    inventory: Inventory = Inventory()
    chests: list[Text] = Field(default_factory=list, max_length=32)
    movement: Movement = Movement()
    nearby_entities: list[Entity] = Field(default_factory=list, max_length=32)
    recent_chat: list[Text] = Field(default_factory=list, max_length=32)
    active_effects: list[Text] = Field(default_factory=list, max_length=32)
    environment: Environment = Environment()
    target_block: Text | None = None


class Routing(Record):
    """What a line of the chat wants.

    ``slots`` has a null for each value that the request needs and leaves open.
    """

    intent: Intent
    slots: dict[Name, JsonValue] = Field(default_factory=dict, max_length=16)
    confidence: Share
    reply: Text = Field("", description="what to say, of a conversation; ours")


class TaskModel(Record):
    """A subtask of a plan. ``preconditions`` are ours."""

    index: int = Field(ge=1, le=MOST_SUBTASKS)
    subtask: Name
    dependencies: list[int] = Field(default_factory=list, max_length=MOST_SUBTASKS)
    parameters: dict[Name, JsonValue] = Field(default_factory=dict, max_length=16)
    preconditions: list[Text] = Field(default_factory=list, max_length=8)
    status: Literal["pending", "in-progress", "completed"] = "pending"
    clarifying_questions: list[Text] = Field(default_factory=list, max_length=1)
    success_criteria: Annotated[str, StringConstraints(min_length=1, max_length=1000)]


class Plan(Record):
    """A plan: 3 to 5 subtasks in the order in which they are executed.

    ``unbound`` names the slot that the clarifying question asks for; ours.
    """

    task_plan: list[TaskModel] = Field(min_length=LEAST_SUBTASKS, max_length=MOST_SUBTASKS)
    unbound: Text = ""

    @model_validator(mode="after")
    def _is_ordered(self) -> Self:
        for number, task in enumerate(self.task_plan, 1):
            if task.index != number:
                raise ValueError(f"subtask {number} has the index {task.index}; count from 1")
            ahead = [each for each in task.dependencies if not 1 <= each < number]
            if ahead:
                raise ValueError(
                    f"subtask {number} depends on {ahead[0]}; a subtask may depend on earlier ones "
                    f"only, so that no plan is circular"
                )
        named = [task.subtask.casefold() for task in self.task_plan]
        if len(set(named)) < len(named):
            raise ValueError("two subtasks are the same; a plan must not repeat a subtask")
        if sum(bool(task.clarifying_questions) for task in self.task_plan) > 1:
            raise ValueError("at most one clarifying question in the whole plan")
        return self

    @property
    def question(self) -> str:
        """The clarifying question; empty for none."""
        return next((q for task in self.task_plan for q in task.clarifying_questions), "")


class Code(Record):
    """A program that executes a subtask: the text of ``async function task(bot) {...}``."""

    code: Annotated[str, StringConstraints(min_length=1, max_length=16_000)]


class Comment(Record):
    """A reviewer's comment on a line of a program."""

    line: int = Field(ge=0)
    comment: Text


class Review(Record):
    """A review of a program."""

    valid: bool
    confidence: Share
    comments: list[Comment] = Field(default_factory=list, max_length=32)


class StateChange(Record):
    """A difference between two states."""

    key: Name
    previous: JsonValue = None
    current: JsonValue = None
    description: Text = ""


class ValidationOutput(Record):
    """A judgement of a subtask from the states before and after it."""

    success: Text | None = None
    failure: Text | None = None
    state_changes: list[StateChange] = Field(default_factory=list, max_length=64)
    chat_insights: list[ChatMessage] = Field(default_factory=list, max_length=32)
    suggestions: Text | None = None
    question_for_player: Text | None = None
    is_task_completed: bool
    final_result: Text | None = None
    confidence_score: int = Field(ge=0, le=10)


class Source(Record):
    """Where a memory is from."""

    chat_id: int | None = None
    tick: int | None = None
    task_id: Text | None = None


class Scope(Record):
    """What a memory is about; empty fields are without a limit."""

    player: Text = ""
    task_family: Text = ""
    area: Text = ""


class MemoryEntry(Record):
    """A memory. Ours.

    The value of a landmark is ``{position: [x, y, z], radius}`` or ``[x, y, z]``.

    Attributes:
        stale: the world may have changed; it binds nothing until it is confirmed.
        confidence: 0 to 1.
    """

    id: int = Field(0, ge=0)
    kind: MemoryKind
    key: Name
    value: JsonValue
    provenance: Provenance
    source: Source = Source()
    scope: Scope = Scope()
    created_tick: Tick = 0
    last_used_tick: Tick = 0
    uses: int = Field(0, ge=0)
    stale: bool = False
    confidence: Share = 1.0

    @model_validator(mode="after")
    def _has_a_place(self) -> Self:
        if len(str(self.value)) > 4000:
            raise ValueError("value: expected at most 4000 characters")
        if self.kind == "landmark" and position_of(self.value) is None:
            raise ValueError(
                f"a landmark's value is {{position: [x, y, z], radius}} or [x, y, z], got "
                f"{self.value!r}"
            )
        return self


def position_of(value: Any) -> tuple[float, float, float] | None:
    """Returns the place in a value, x, y, z in blocks: itself, its ``position``, or None."""
    place = value.get("position") if isinstance(value, dict) else value
    if not isinstance(place, list) or len(place) != 3:
        return None
    if not all(isinstance(n, int | float) and not isinstance(n, bool) for n in place):
        return None
    return float(place[0]), float(place[1]), float(place[2])


class UserInfo(Record):
    """Who a player is."""

    user_name: Text = ""
    preferred_name: Text = ""
    experience_level: Text = ""
    preferred_language: Text = "English"


Names: TypeAlias = Annotated[list[Text], Field(max_length=64)]
Places: TypeAlias = Annotated[dict[Name, JsonValue], Field(max_length=64)]


class Preferences(Record):
    """What a player prefers."""

    favorite_weapons: Names = []
    specific_log_collection_location: Annotated[list[JsonValue], Field(max_length=64)] = []
    prefers_bot_assistance: bool | None = None
    preferred_building_materials: Names = []
    typical_play_style: Text = ""


class WorldKnowledge(Record):
    """What a player knows of the world."""

    chest_locations: Places = {}
    safe_zones: Annotated[list[JsonValue], Field(max_length=64)] = []
    known_allies: Names = []
    visited_locations: Annotated[list[JsonValue], Field(max_length=64)] = []
    landmarks: Places = {}
    resource_hotspots: Annotated[list[JsonValue], Field(max_length=64)] = []


class BehavioralInsights(Record):
    """How a player behaves."""

    average_session_length: JsonValue = None
    interaction_frequency: JsonValue = None
    reaction_to_bot_failures: Text = ""
    preferred_communication_style: Text = ""
    task_completion_patterns: JsonValue = None


class UserData(Record):
    """The profile of a player, ``user_data.json`` of the paper."""

    user_info: UserInfo = UserInfo()
    preferences: Preferences = Preferences()
    world_knowledge: WorldKnowledge = WorldKnowledge()
    behavioral_insights: BehavioralInsights = BehavioralInsights()
    last_updated: Text = ""


_R = TypeVar("_R", bound=Record)


def read_reply(kind: type[_R], text: str) -> _R:
    """Returns the record in a reply of a model: one JSON object, perhaps fenced.

    Raises:
        ValueError: it is none; the message says what is wrong, for the model.
    """
    try:
        return kind.model_validate(json_object(text))
    except ValidationError as error:
        raise ValueError(describe_error(error)) from error


def describe_error(error: ValidationError) -> str:
    """Returns what is wrong with a record: the first three problems with their places."""
    found = []
    for each in error.errors()[:3]:
        place = ".".join(map(str, each["loc"]))
        found.append(f"{place + ': ' if place else ''}{each['msg'].removeprefix('Value error, ')}")
    return "; ".join(found)
