"""Checks that ``openenv validate`` names and has no code for, of any server of its protocol.

::

    python -m rollout.interop.openenv_graders http://127.0.0.1:8000 [--oracle PLAN.json --most 1.0]

Each check is also a grader of OpenEnv, by entry points of the group ``openenv.validation.graders``;
only then is OpenEnv itself imported. An oracle is a runtime plan of OpenEnv: the arguments of the
reset, and the actions that earn the largest reward.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import connect

from rollout.files import read_document

_WAIT_S = 60.0  # for an answer
_STEPS = 12  # of an episode that is compared
_SEEDS = 6
_TASKS = 20  # of each split
_LARGEST = 2**26  # bytes of a message
_SECRET = re.compile(
    r"(^|_)(solution|answers?|oracle|ground_truth|gold|privileged)($|_)", re.IGNORECASE
)

Status = Literal["pass", "fail", "skip", "error"]


@dataclass
class Finding:
    """What a check found.

    Attributes:
        status: of OpenEnv.
        evidence: sentences.
        measured: numbers.
    """

    status: Status
    evidence: list[str] = field(default_factory=list)
    measured: dict[str, Any] = field(default_factory=dict)


class ServerError(Exception):
    """An error message of a server; its code is the first argument."""


@dataclass
class Server:
    """A server that is checked.

    Attributes:
        url: its address.
        oracle: a runtime plan that earns ``most``; None if there is none.
        most: largest sum of rewards of an episode; None if it is not known.
        tolerance: how much less of it the oracle may earn.
        margin: how much less random actions must earn.
    """

    url: str
    oracle: Mapping[str, Any] | None = None
    most: float | None = None
    tolerance: float = 0.0
    margin: float = 0.0

    def request(self, path: str, data: Mapping[str, Any] | None = None) -> Any:
        """Returns the JSON at a path: of GET, or of POST with data."""
        body = None if data is None else json.dumps(data).encode()
        request = Request(self.url + path, body, {"Content-Type": "application/json"})  # noqa: S310 - the address that the user gave
        with urlopen(request, timeout=_WAIT_S) as answer:  # noqa: S310 - likewise
            return json.loads(answer.read(_LARGEST))

    @contextmanager
    def session(self) -> Iterator[Callable[..., dict[str, Any]]]:
        """Yields a function that sends a message and returns the data of its answer."""
        address = re.sub(r"^http", "ws", self.url) + "/ws"
        options: dict[str, Any] = {"open_timeout": _WAIT_S, "max_size": _LARGEST}
        with connect(address, proxy=None, **options) as socket:

            def ask(kind: str, data: Mapping[str, Any] | None = None) -> dict[str, Any]:
                socket.send(json.dumps({"type": kind} | ({} if data is None else {"data": data})))
                answer = json.loads(socket.recv(_WAIT_S))
                found: dict[str, Any] = answer["data"]
                if answer["type"] == "error":
                    raise ServerError(found.get("code", ""), found.get("message", ""))
                return found

            yield ask

    def actions(self, seed: int) -> list[dict[str, Any]]:
        """Returns random actions of the schema."""
        schema, rng = self.request("/schema")["action"], random.Random(seed)  # noqa: S311 - no secret
        return [_sample(schema, schema.get("$defs", {}), rng) for _ in range(_STEPS)]

    def play(self, seed: int, actions: Sequence[Mapping[str, Any]]) -> list[str]:
        """Returns what one episode showed: a text for the reset and for each step."""
        with self.session() as ask:
            return episode(ask, seed, actions)

    def returns(self, reset: Mapping[str, Any], actions: Sequence[Mapping[str, Any]]) -> float:
        """Returns the sum of rewards of an episode."""
        with self.session() as ask:
            shown, total = ask("reset", reset), 0.0
            for action in actions:
                if shown["done"]:
                    break
                shown = ask("step", action)
                total += float(shown["reward"] or 0.0)
            return total


def episode(
    ask: Callable[..., dict[str, Any]], seed: int, actions: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Plays an episode in a session; see ``Server.play``."""
    shown = [ask("reset", {"seed": seed, "episode_id": "check"})]
    for action in actions:
        if shown[-1]["done"]:
            break
        shown.append(ask("step", action))
    return [json.dumps(each, sort_keys=True) for each in shown]


def _sample(schema: Mapping[str, Any], known: Mapping[str, Any], rng: random.Random) -> Any:
    """Returns a random value of a JSON schema, of the forms that actions have."""
    for key in ("anyOf", "oneOf", "allOf"):
        schema = schema.get(key, [schema])[0]
    if "$ref" in schema:
        schema = known.get(schema["$ref"].rpartition("/")[2], {})
    if "const" in schema or "enum" in schema:
        return rng.choice(schema.get("enum") or [schema["const"]])
    low, kind = schema.get("minimum", 0), schema.get("type", "object")
    makers: Mapping[str, Callable[[], Any]] = {
        "object": lambda: _sample_object(schema, known, rng),
        "array": lambda: [
            _sample(schema.get("items", {"type": "number"}), known, rng)
            for _ in range(schema.get("minItems", rng.randrange(3)))
        ],
        "integer": lambda: rng.randint(low, schema.get("maximum", low + 9)),
        "number": lambda: rng.uniform(low, schema.get("maximum", low + 1)),
        "boolean": lambda: rng.random() < 0.5,
        "string": lambda: f"check {rng.randrange(100)}",
    }
    return makers[kind]() if kind in makers else None


def _sample_object(
    schema: Mapping[str, Any], known: Mapping[str, Any], rng: random.Random
) -> dict[str, Any]:
    needed, found = schema.get("required", ()), {}
    for name, each in schema.get("properties", {}).items():
        if name in needed or (name != "metadata" and rng.random() < 0.5):
            found[name] = _sample(each, known, rng)
    return found


def _same(first: list[str], second: list[str], what: str) -> Finding:
    if first == second:
        return Finding("pass", measured={"steps": len(first) - 1})
    step = next((n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None)
    at = f"in step {step}" if step is not None else f"in length: {len(first)} and {len(second)}"
    return Finding("fail", [f"{what} differ {at}"])


def seed_control(server: Server) -> Finding:
    """The same seed gives the same episode, and other seeds give others."""
    actions = server.actions(0)
    shown = [server.play(seed, actions) for seed in range(_SEEDS)]
    again = _same(shown[0], server.play(0, actions), "two episodes with seed 0")
    bare = {re.sub(r'"seed": \d+', "", " ".join(each)) for each in shown}
    if again.status == "pass" and len(bare) == 1:
        return Finding("fail", [f"{_SEEDS} seeds gave the same episode: the seed has no effect"])
    again.measured["distinct"] = len(bare)
    return again


def episode_determinism(server: Server) -> Finding:
    """The same seed and actions give the same observations, rewards and ends."""
    actions = server.actions(1)
    first, second = (
        [line for seed in range(7, 10) for line in server.play(seed, actions)] for _ in range(2)
    )
    return _same(first, second, "equal episodes")


def episode_isolation(server: Server) -> Finding:
    """An episode is the same beside other sessions, and after another one in its session."""
    actions, others = server.actions(2), server.actions(3)
    alone = server.play(11, actions)
    with server.session() as ask:
        episode(ask, 12, others)
        found = _same(alone, episode(ask, 11, actions), "an episode alone and one after another")
        if found.status != "pass":
            return found
        with server.session() as other:
            try:
                other("reset", {"seed": 13})
            except (ServerError, ConnectionClosed) as error:
                return Finding("skip", [f"the server has no second session: {error}"])

            def beside(kind: str, data: Mapping[str, Any] | None = None) -> dict[str, Any]:
                with_other = other("step", others[0]) if kind == "step" else {"done": True}
                if with_other["done"]:
                    other("reset", {"seed": 13})
                return ask(kind, data)

            shown = episode(beside, 11, actions)
    return _same(alone, shown, "an episode alone and one beside another session")


def task_declaration_accuracy(server: Server) -> Finding:
    """Tasks are as many as declared, equal when asked twice, and in one split each."""
    seen: dict[str, str] = {}
    counts = {}
    try:
        [name, *_] = server.request("/list_environments")
        splits = [split["name"] for split in server.request(f"/{name}/splits")]
    except (HTTPError, ValueError) as error:
        return Finding("skip", [f"the server has no Task API: {error}"])
    for split in splits:
        count = server.request(f"/{name}/num_tasks", {"split": split})["num_tasks"]
        counts[split] = count
        for index in range(min(count, _TASKS)):
            asked = {"split": split, "index": index}
            task, again = (server.request(f"/{name}/task", asked)["task"] for _ in range(2))
            if task != again:
                return Finding("fail", [f"task {index} of {split} changes when asked again"])
            text = json.dumps({k: v for k, v in task.items() if k in ("state", "values")} or task)
            if seen.setdefault(text, split) != split:
                return Finding("fail", [f"task {index} of {split} is in {seen[text]}, too"])
        try:
            server.request(f"/{name}/task", {"split": split, "index": count})
        except HTTPError:
            continue
        return Finding("fail", [f"{split} declares {count} tasks and gives task {count}"])
    return Finding("pass", measured=counts)


def no_solution_leakage(server: Server) -> Finding:
    """Nothing that a client gets has a key that names an answer."""
    with server.session() as ask:
        found = [ask("reset", {"seed": 5}), ask("step", server.actions(4)[0]), ask("state")]
    found.append(server.request("/metadata"))
    named = sorted({key for each in found for key in _keys(each) if _SECRET.search(key)})
    if named:
        return Finding("fail", [f"keys that name an answer: {', '.join(named)}"])
    return Finding("pass")


def _keys(data: Any) -> Iterator[str]:
    if isinstance(data, Mapping):
        yield from data
    for each in data.values() if isinstance(data, Mapping) else data:
        if isinstance(each, Mapping | list):
            yield from _keys(each)


def oracle_max(server: Server) -> Finding:
    """The oracle earns the largest reward."""
    if server.oracle is None or server.most is None:
        return Finding("skip", ["there is no oracle; give a runtime plan and what it earns"])
    reset = server.oracle["reset"]
    earned = server.returns(_arguments(reset), server.oracle["actions"])
    measured = {"oracle": earned, "most": server.most, "tolerance": server.tolerance}
    enough = earned >= server.most - server.tolerance
    why = f"the oracle earned {earned:g} of {server.most:g}"
    return Finding("pass" if enough else "fail", [] if enough else [why], measured)


def floor_gap(server: Server) -> Finding:
    """Random actions earn clearly less than the largest reward."""
    if server.most is None:
        return Finding("skip", ["the largest sum of rewards is not known; give it by --most"])
    reset = {"seed": 3} if server.oracle is None else _arguments(server.oracle["reset"])
    floor = max(server.returns(reset, server.actions(seed)) for seed in range(5))
    gap = server.most - floor
    fits = gap >= server.margin and gap > 0
    why = f"random actions earned {floor:g} of {server.most:g}"
    return Finding("pass" if fits else "fail", [] if fits else [why], {"floor": floor, "gap": gap})


def _arguments(reset: Mapping[str, Any]) -> dict[str, Any]:
    return {**reset.get("options", {}), **{k: v for k, v in reset.items() if k != "options"}}


CHECKS: Mapping[str, Callable[[Server], Finding]] = {
    "runtime.seed_control": seed_control,
    "runtime.episode_determinism": episode_determinism,
    "runtime.episode_isolation": episode_isolation,
    "runtime.task_declaration_accuracy": task_declaration_accuracy,
    "semantic.no_solution_leakage": no_solution_leakage,
    "semantic.oracle_max": oracle_max,
    "semantic.floor_gap": floor_gap,
}


def run(check_id: str, server: Server) -> Finding:
    """Runs a check; an error of the server or the network is a finding, too."""
    try:
        return CHECKS[check_id](server)
    except (OSError, TimeoutError, ServerError, WebSocketException, LookupError) as error:
        return Finding("error", [f"{type(error).__name__}: {error}"])


@dataclass(frozen=True)
class Grader:
    """One check as a grader of OpenEnv; see its ``openenv.validation.graders.Grader``."""

    check_id: ClassVar[str]
    requires_capabilities: ClassVar[frozenset[str]] = frozenset()
    requires_provider: ClassVar[frozenset[Any]] = frozenset()
    depends_on: ClassVar[tuple[str, ...]] = ("runtime.startup",)

    @property
    def level(self) -> Any:
        """Its level of OpenEnv."""
        from openenv.validation import Level  # noqa: PLC0415 - not ours

        return Level.RUNTIME if self.check_id.startswith("runtime.") else Level.SEMANTIC

    def applies_to(self, manifest: Any) -> bool:
        """Returns True: a check of what a package does not have is skipped."""
        del manifest
        return True

    def run(self, subject: Any) -> Any:
        """Returns the result of OpenEnv for its running subject."""
        from openenv.validation import CheckResult, CheckStatus  # noqa: PLC0415 - not ours

        began, reward = time.monotonic(), subject.manifest.reward
        oracle = subject.manifest.capabilities.oracle
        plan = None
        if oracle is not None and oracle.location.endswith(".json"):
            plan = json.loads(read_document(subject.root / oracle.location))
        server = Server(
            subject.running.base_url.rstrip("/"),
            plan,
            reward.range[1],
            reward.oracle_tolerance,
            reward.floor_margin,
        )
        found = run(self.check_id, server)
        return CheckResult(
            check_id=self.check_id,
            status=CheckStatus(found.status),
            evidence=found.evidence,
            measured=found.measured,
            duration_s=time.monotonic() - began,
        )


class SeedControl(Grader):
    """``runtime.seed_control``."""

    check_id = "runtime.seed_control"


class EpisodeDeterminism(Grader):
    """``runtime.episode_determinism``."""

    check_id = "runtime.episode_determinism"


class EpisodeIsolation(Grader):
    """``runtime.episode_isolation``."""

    check_id = "runtime.episode_isolation"


class TaskDeclarationAccuracy(Grader):
    """``runtime.task_declaration_accuracy``."""

    check_id = "runtime.task_declaration_accuracy"


class NoSolutionLeakage(Grader):
    """``semantic.no_solution_leakage``."""

    check_id = "semantic.no_solution_leakage"


class OracleMax(Grader):
    """``semantic.oracle_max``."""

    check_id = "semantic.oracle_max"


class FloorGap(Grader):
    """``semantic.floor_gap``."""

    check_id = "semantic.floor_gap"


def main(argv: Sequence[str] | None = None) -> int:
    """Checks a server and prints the findings; returns 1 if a check fails."""
    parser = argparse.ArgumentParser(description="Checks a server of OpenEnv's protocol.")
    parser.add_argument("url", help="its address, e.g. http://127.0.0.1:8000")
    parser.add_argument("--oracle", type=Path, metavar="FILE", help="runtime plan of an oracle")
    parser.add_argument("--most", type=float, help="largest sum of rewards of an episode")
    given = parser.parse_args(argv)
    if given.oracle is not None and given.most is None:
        parser.error("--oracle needs --most, the largest sum of rewards")
    oracle = None if given.oracle is None else json.loads(read_document(given.oracle))
    server, status = Server(given.url.rstrip("/"), oracle, given.most), 0
    for check_id in CHECKS:
        found = run(check_id, server)
        status |= found.status in ("fail", "error")
        told = "; ".join([*found.evidence, *(f"{k}={v}" for k, v in found.measured.items())])
        sys.stdout.write(f"{found.status.upper():5} {check_id}  {told}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
