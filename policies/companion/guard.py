"""Checks programs against the bounded-knowledge policy: ``policy.yaml`` on their syntax trees.

This is the first of three layers: what it cannot decide from the text, the sandbox decides by the
values (``bridges/mineflayer/game/sandbox/api.js``), and the server by what it receives.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from rollout.errors import ConfigError
from rollout.yaml12 import load_yaml

_FILE = Path(__file__).with_name("policy.yaml")
_MOST, _LONGEST = 8, 160  # violations that are listed; characters of their evidence
_CHUNK = 16
_ESCAPE = re.compile(
    r"\\(?:u\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL
)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}
_NAMED = ("identifier", "shorthand_property_identifier")
_CHECKED = frozenset(
    (
        *_NAMED,
        *("member_expression", "subscript_expression", "pair_pattern", "call_expression"),
        *("shorthand_property_identifier_pattern", "import", "import_statement", "string"),
    )
)
_LINE = 1
_DEEPEST, _LONGEST_TEXT = 64, 1000  # of constants; deeper ones are left to the sandbox


class Rule(BaseModel):
    """An entry of ``policy.yaml``, which explains the keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    why: str
    names: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    members: frozenset[str] = frozenset()
    bot: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    begins: str = ""
    limits: Mapping[str, Mapping[str, float]] = Field(default_factory=dict)
    imports: bool = False
    computed: bool = False
    refused: str = ""


@dataclass(frozen=True)
class Violation:
    """A breach of the policy.

    Attributes:
        layer: ``static``, ``runtime`` or ``server``.
        rule: its name in ``policy.yaml``; ``syntax`` for a program that cannot be read.
        evidence: the part of the program, or what was refused.
        line: line of the program, from 1; 0 if unknown.
        why: the reason for the rule.
    """

    layer: str
    rule: str
    evidence: str
    line: int = 0
    why: str = ""

    def as_json(self) -> dict[str, Any]:
        """Returns what is recorded."""
        return asdict(self)

    def __str__(self) -> str:
        at = f"line {self.line}: " if self.line else ""
        return f"{at}{self.rule}: {self.evidence} ({self.why})"


@functools.cache
def rules() -> Mapping[str, Rule]:
    """Returns the rules of the policy, by name."""
    return {name: Rule.model_validate(each) for name, each in load_yaml(_FILE, ours=True).items()}


@functools.cache
def _subjects() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Returns the variables, properties and functions that any rule is about."""
    every = list(rules().values())
    names = frozenset[str]().union(*(rule.names | rule.absent for rule in every))
    members = frozenset[str]().union(*(rule.members | rule.bot for rule in every))
    called = frozenset[str]().union(*(rule.texts | set(rule.limits) for rule in every))
    return names, members, called


def check_program(text: str, *, view_distance: int = 4) -> list[Violation]:
    """Returns how a program breaks the policy, at most 8 violations; empty if it does not.

    Args:
        text: the program, JavaScript.
        view_distance: radius in chunks in which the world is loaded, for the reach of searches.

    Raises:
        ConfigError: the parser is not installed.
    """
    root = _parse(text)
    checker = _Checker(min(64, _CHUNK * view_distance))
    broken = _first_error(root) if root.has_error else None
    if broken is not None:
        line = broken.start_point[0] + _LINE
        return [Violation("static", "syntax", _shown(broken), line, "the program cannot be read")]
    checker.learn(root)
    found: list[Violation] = []
    for node in _walk(root):
        found += checker.violations(node)
        if len(found) >= _MOST:
            break
    return found[:_MOST]


def violations_in(details: Mapping[str, Any]) -> list[Violation]:
    """Returns the violations that the sandbox and the server report of a step.

    Args:
        details: of the step: ``trace`` with events ``violation``, ``code_info`` with the error that
            ended the program.
    """
    found = []
    for event in details.get("trace") or ():
        if event.get("type") == "violation":
            rule = str(event.get("rule", ""))
            found.append(_reported("server", rule, str(event.get("evidence", ""))))
    said = str((details.get("code_info", {}).get("code_error") or {}).get("error_message", ""))
    for name, rule_ in rules().items():
        if not found and rule_.refused and rule_.refused in said:
            found.append(_reported("runtime", name, said))
    return found[:_MOST]


def _reported(layer: str, rule: str, evidence: str) -> Violation:
    known = rules().get(rule)
    return Violation(layer, rule, evidence[:_LONGEST], 0, known.why if known else "")


def _parse(text: str) -> Any:
    try:
        import tree_sitter  # noqa: PLC0415 - an optional dependency
        import tree_sitter_javascript  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"companions need the package {error.name} to check programs; install Gamut with its "
            f"extra vlm: pip install 'gamut[vlm]'"
        ) from error
    language = tree_sitter.Language(tree_sitter_javascript.language())
    tree = tree_sitter.Parser(language).parse(text.encode(errors="replace"))
    return tree.root_node


def _walk(root: Any) -> Iterator[Any]:
    """Yields every node, without recursion: programs may be nested as deeply as they are long."""
    left = [root]
    while left:
        node = left.pop()
        yield node
        left += reversed(node.children)


def _first_error(root: Any) -> Any:
    return next((each for each in _walk(root) if each.is_error or each.is_missing), root)


def _text(node: Any) -> str:
    return str(node.text.decode())


def _shown(node: Any) -> str:
    text = " ".join(_text(node).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _decoded(text: str) -> str:
    """Returns a text of JavaScript with its escape sequences replaced."""
    if "\\" not in text:
        return text

    def character(match: re.Match[str]) -> str:
        code = match[1] or match[2] or match[3]
        if code:
            return chr(min(int(code, 16), 0x10FFFF))
        return _PLAIN.get(match[4], match[4])

    return _ESCAPE.sub(character, text)


@dataclass
class _Checker:
    """What is known of one program.

    Attributes:
        reach: greatest distance of a search.
        constants: values of variables that are set once, by name.
        agents: variables that are the agent.
        declared: functions and variables that it declares.
    """

    reach: int
    constants: dict[str, Any] = field(default_factory=dict)
    agents: set[str] = field(default_factory=lambda: {"bot"})
    declared: set[str] = field(default_factory=set)

    def learn(self, root: Any) -> None:
        """Collects constants, and other names of the agent."""
        seen: set[str] = set()
        for node in _walk(root):
            name = node.child_by_field_name("name")
            if name is not None and node.type in ("variable_declarator", "function_declaration"):
                self.declared.add(_decoded(_text(name)))
            if node.type not in ("variable_declarator", "assignment_expression"):
                continue
            name = name or node.child_by_field_name("left")
            value = node.child_by_field_name("value") or node.child_by_field_name("right")
            if name is None or value is None or name.type != "identifier":
                continue
            key = _decoded(_text(name))
            if value.type == "identifier" and _text(value) in self.agents:
                self.agents.add(key)
            if key in seen:
                self.constants.pop(key, None)
            else:
                self.constants[key] = self.value(value)
            seen.add(key)

    def violations(self, node: Any) -> Iterator[Violation]:
        """Yields how a node breaks the policy."""
        if node.type not in _CHECKED or not self._may_break(node):
            return
        for name, rule in rules().items():
            if self._breaks(node, rule):
                line = node.start_point[0] + _LINE
                yield Violation("static", name, _shown(node), line, rule.why)

    def _may_break(self, node: Any) -> bool:
        """Returns whether a node names anything that a rule is about; most do not."""
        names, members, called = _subjects()
        if node.type in _NAMED:
            return _decoded(_text(node)) in names
        if node.type == "member_expression":
            name = node.child_by_field_name("property")
            return name is None or _decoded(_text(name)) in members
        return node.type != "call_expression" or self._called(node) in called

    def _breaks(self, node: Any, rule: Rule) -> bool:
        kind = node.type
        if kind in _NAMED:
            name = _decoded(_text(node))
            return name in rule.names or (name in rule.absent and name not in self.declared)
        if kind in ("member_expression", "subscript_expression"):
            return self._breaks_by_member(node, rule)
        if kind in ("pair_pattern", "shorthand_property_identifier_pattern"):
            key = node.child_by_field_name("key") or node
            return self._key(key) in rule.members | rule.bot
        if kind in ("import", "import_statement"):
            return rule.imports
        if kind == "string":
            return self.value(node) in rule.members and _is_passed(node)
        return kind == "call_expression" and self._breaks_by_call(node, rule)

    def _breaks_by_member(self, node: Any, rule: Rule) -> bool:
        owner = node.child_by_field_name("object")
        name = node.child_by_field_name("property") or node.child_by_field_name("index")
        if owner is None or name is None:
            return False
        agent = owner.type == "identifier" and _decoded(_text(owner)) in self.agents
        key = self._key(name)
        if key is None:
            return agent and rule.computed
        return key in rule.members or (agent and key in rule.bot)

    def _key(self, node: Any) -> str | None:
        """Returns the name of a property; None if only the running program knows it."""
        if node.type in (
            *("property_identifier", "private_property_identifier"),
            "shorthand_property_identifier_pattern",
        ):
            return _decoded(_text(node))
        if node.type == "computed_property_name":
            return self._key(node.children[1])
        value = self.value(node)
        return None if value is None else str(value)

    def _breaks_by_call(self, node: Any, rule: Rule) -> bool:
        given, called = node.child_by_field_name("arguments"), self._called(node)
        if given is None or given.type != "arguments":
            return False
        values = [each for each in given.children if each.is_named and each.type != "comment"]
        if called in rule.texts:
            return any(self._beginning(each).startswith(rule.begins) for each in values)
        most = rule.limits.get(called)
        if most is None:
            return False
        return any(self._exceeds(pair, most) for each in values for pair in each.children)

    def _called(self, node: Any) -> str:
        """Returns the name of the function that a call names; empty if none."""
        function = node.child_by_field_name("function")
        if function is None:
            return ""
        name = function.child_by_field_name("property") or function.child_by_field_name("index")
        return (self._key(name) if name is not None else _decoded(_text(function))) or ""

    def _exceeds(self, pair: Any, most: Mapping[str, float]) -> bool:
        """Returns whether an option of a search is over its limit."""
        key, value = pair.child_by_field_name("key"), pair.child_by_field_name("value")
        if pair.type != "pair" or key is None or value is None:
            return False
        name, number = self._key(key), self.value(value)
        if name is None or name not in most or not isinstance(number, int | float):
            return False
        limit = min(most[name], self.reach) if most[name] <= 64 else most[name]
        return number > limit

    def _beginning(self, node: Any) -> str:
        """Returns how a text begins, as far as the program's text says: its first part."""
        left = [node]
        while left:
            node = left.pop()
            parts = _parts(node)
            left += reversed(parts)
            if not parts:
                of_template = node.type in ("string_fragment", "escape_sequence")
                text = _decoded(_text(node)) if of_template else str(self.value(node) or "")
                if text.lstrip() or not (of_template or node.type.endswith("string")):
                    return text.lstrip()
        return ""

    def value(self, node: Any, depth: int = 0) -> Any:
        """Returns the value of a constant expression; None if it is not constant, or deep.

        Of a long text it is the beginning.
        """
        kind = node.type if depth <= _DEEPEST else ""
        if kind == "string" or (kind == "template_string" and _is_constant(node)):
            return _decoded(_text(node)[1:-1])
        if kind == "identifier":
            name = _decoded(_text(node))
            return float("inf") if name == "Infinity" else self.constants.get(name)
        if kind == "parenthesized_expression":
            return self.value(node.children[1], depth + 1)
        if kind == "binary_expression":
            return self._combined(node, depth + 1)
        return _number(_text(node)) if kind == "number" else None

    def _combined(self, node: Any, depth: int) -> Any:
        """Returns a sum or product of constants; texts are joined."""
        left = node.child_by_field_name("left")
        right = node.child_by_field_name("right")
        one = self.value(left, depth)
        other = None if one is None else self.value(right, depth)
        if other is None:
            return None
        operator = _text(node.child_by_field_name("operator"))
        if operator == "+" and (isinstance(one, str) or isinstance(other, str)):
            return f"{one}{other}"[:_LONGEST_TEXT]
        if operator in ("+", "*") and not isinstance(one, str) and not isinstance(other, str):
            return one + other if operator == "+" else one * other
        return None


def _parts(node: Any) -> list[Any]:
    """Returns what the text of an expression is made of, from its beginning on."""
    if node.type == "template_string" and not _is_constant(node):
        return [each for each in node.children if each.is_named]
    if node.type in ("template_substitution", "parenthesized_expression"):
        return [node.children[1]]
    if node.type == "binary_expression" and _text(node.child_by_field_name("operator")) == "+":
        return [node.child_by_field_name("left"), node.child_by_field_name("right")]
    if node.type == "call_expression":  # '/give'.concat(...), '/give'.trim()
        function = node.child_by_field_name("function")
        owner = function.child_by_field_name("object") if function is not None else None
        return [] if owner is None else [owner]
    return []


def _is_constant(template: Any) -> bool:
    return all(each.type != "template_substitution" for each in template.children)


def _is_passed(string: Any) -> bool:
    """Returns whether a text is passed on, other than to a function that says or prints it."""
    around = string.parent
    if around.type != "arguments":
        return around.type in ("array", "pair")
    function = around.parent.child_by_field_name("function")
    name = function.child_by_field_name("property") if function is not None else None
    said: Sequence[str] = ("chat", "whisper", "log", "warn", "error", "Error")
    return name is None or _text(name) not in said


def _number(text: str) -> float | None:
    try:
        digits = text.replace("_", "").removesuffix("n")
        based = digits[:2].lower() in ("0x", "0o", "0b")
        return float(int(digits, 0) if based else digits)
    except ValueError:
        return None
    except OverflowError:
        return float("inf")
