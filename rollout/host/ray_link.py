"""The connection of a host to an inference actor, in whichever incarnation it runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, ObjectLostError, RayActorError, RayTaskError

from rollout.api import Start
from rollout.host.batching import Unreachable
from rollout.host.deciding import Question
from rollout.host.inference import Answer, Hello, ServerPulse
from rollout.host.ray_actors import RayLauncher, main_line
from rollout.host.routing import Gone

_LOOKUP_S = 0.5  # how often the name of a replacement is looked up
_ANSWER_S = 5.0  # deadline to fetch a pulse that is ready


class RayLink:
    """A connection to a server in a named Ray actor; picklable. See ``routing.Link``.

    Args:
        prefix: of the actor's names; the number of its incarnation follows.

    Attributes:
        gone: why it was abandoned; set where its supervisor runs, and empty elsewhere.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix, self.gone = prefix, ""
        self._handle: Any = None
        self._looked = -_LOOKUP_S
        self._asked: Any = None  # the reference to a pulse that was asked for

    def __reduce__(self) -> tuple[type[RayLink], tuple[str]]:
        return type(self), (self._prefix,)

    def hello(self, timeout_s: float) -> Hello:
        """Returns what a new client must know."""
        hello: Hello = self._call(lambda actor: actor.hello.remote(), timeout_s)
        return hello

    def begin(self, starts: Sequence[Start], timeout_s: float) -> Answer:
        """Returns the memory of new episodes."""
        answer: Answer = self._call(lambda actor: actor.begin.remote(starts, timeout_s), timeout_s)
        return answer

    def act(self, question: Question, timeout_s: float) -> Answer:
        """Returns a decision."""
        answer: Answer = self._call(lambda actor: actor.act.remote(question, timeout_s), timeout_s)
        return answer

    def pulse(self, timeout_s: float) -> ServerPulse | None:
        """Returns its sign of life, or None if there was none within ``timeout_s``."""
        try:
            if self._asked is None:
                self._asked = RayLauncher.ask(self._find())
            if not ray.wait([self._asked], timeout=timeout_s)[0]:
                return None
            asked, self._asked = self._asked, None
            pulse: ServerPulse
            _, pulse = self._get(asked, _ANSWER_S)
        except Gone:
            raise
        except Unreachable:
            return None
        return pulse

    def _call(self, question: Callable[[Any], Any], timeout_s: float) -> Any:
        return self._get(question(self._find()), timeout_s)

    def _find(self) -> Any:
        """Returns the handle of the newest incarnation."""
        if self.gone:
            raise Gone(self.gone)
        if self._handle is None:
            now = time.monotonic()
            if now - self._looked < _LOOKUP_S:
                raise Unreachable("it is being replaced")
            self._looked = now
            names = [n for n in ray.util.list_named_actors() if n.startswith(self._prefix)]
            try:
                self._handle = ray.get_actor(max(names, key=lambda n: int(n.rpartition("-")[2])))
            except ValueError as error:  # there is none, or it has just died
                raise Unreachable("it is being replaced") from error
        return self._handle

    def _get(self, reference: Any, timeout_s: float) -> Any:
        """Returns the actor's reply, or raises its policy's error."""
        try:
            return ray.get(reference, timeout=timeout_s)
        except RayTaskError as error:
            cause = getattr(error, "cause", None)
            raise cause if isinstance(cause, Exception) else error from error
        except GetTimeoutError as error:
            raise Unreachable(f"did not answer within {timeout_s:.3g} s") from error
        except (RayActorError, ObjectLostError) as error:
            self._handle = None
            raise Unreachable(main_line(error)) from error
