"""Resources that games need, and checks that a cluster has them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollout.api import Resources
from rollout.errors import ConfigError, nearest

_MIB = 1 << 20
GROUP = "ray.io/node-group"
"""Label of machines that an autoscaler or KubeRay has started."""

_OWN = ("CPU", "GPU", "memory", "object_store_memory")  # names that Ray gives a meaning to


@dataclass(frozen=True)
class Node:
    """The total resources of a machine, used or not, by Ray's names, ``memory`` in bytes.

    ``group`` is the kind of machine where an autoscaler or KubeRay has started it.
    """

    name: str
    resources: Mapping[str, float]
    group: str = ""

    def has(self, resource: str) -> float:
        """Returns how much it has of a resource."""
        return float(self.resources.get(resource, 0.0))


def read_nodes() -> list[Node]:
    """Returns the machines of the cluster that was joined."""
    import ray  # noqa: PLC0415 - Ray is imported once its authentication is decided

    return [
        Node(
            str(node["NodeManagerAddress"]),
            dict(node["Resources"]),
            str(node["Labels"].get(GROUP, "")),
        )
        for node in ray.nodes()
        if node["Alive"]
    ]


def grows(nodes: Sequence[Node]) -> bool:
    """Returns whether machines can be added to a cluster."""
    return any(node.group for node in nodes)


def requested_resources(options: Mapping[str, Any]) -> dict[str, float]:
    """Returns the resources in the Ray options of an actor, by Ray's names."""
    own = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}
    asked = {name: options.get(key) for name, key in own.items()}
    custom = options.get("resources") or {}
    return {name: float(amount) for name, amount in {**asked, **custom}.items() if amount}


def missing_resources(asked: Mapping[str, float], nodes: Sequence[Node]) -> str:
    """Returns the resources that no machine has, as text; all if no machine has all of them."""
    never = {k: v for k, v in asked.items() if not any(_places(n, {k: v}) for n in nodes)}
    amounts = {k: f"{v / _MIB:.0f} MiB" if k == "memory" else f"{v:g}" for k, v in asked.items()}
    return ", ".join(f"{k}: {amounts[k]}" for k in never or asked)


def fits(node: Node, asked: Mapping[str, float]) -> bool:
    """Returns True if an idle machine has all requested resources."""
    return _places(node, asked) >= 1


def actor_options(
    needs: Resources, actors: int, *, instances: int = 1, nodes: Sequence[Node] | None = None
) -> dict[str, Any]:
    """Returns the options of Ray actors that host games, so that Ray places them.

    GPUs and custom resources are asked for in full. So are processors and memory, as long as all
    actors fit; more actors than fit share them in equal parts, since Ray would let those that are
    too many wait forever. Where machines can be added, nothing is shared: Ray adds them.

    Args:
        needs: of the bridge. Memory, GPUs and custom resources are those of one instance;
            processors are those of an actor, whose instances take turns.
        actors: number of such actors.
        instances: number of instances in each actor.
        nodes: machines of the cluster; None to ask the one that was joined.

    Returns:
        keyword arguments for ``ray.remote``.
    """
    nodes = read_nodes() if nodes is None else nodes
    kept = {name: amount * instances for name, amount in needs.custom.items() if amount}
    hard = {**kept, **({"GPU": needs.gpus * instances} if needs.gpus else {})}
    fit = [n for n in nodes if all(n.has(k) >= v for k, v in hard.items())] or list(nodes)
    cpus, memory = needs.cpus, float(needs.memory_mb * _MIB * instances)
    if not grows(nodes):
        cpus = _share(cpus, [node.has("CPU") for node in fit], actors)
        memory = _share(memory, [node.has("memory") for node in fit], actors)
    out: dict[str, Any] = {"num_cpus": math.floor(cpus * 1e4) / 1e4, "memory": int(memory)}
    if needs.gpus:
        out["num_gpus"] = needs.gpus * instances
    return {**out, "resources": kept} if kept else out


def _share(need: float, totals: Sequence[float], actors: int) -> float:
    """Returns the most that each of ``actors`` can have, ``need`` at best, so that all fit."""

    def fits(share: float) -> bool:
        return sum(math.floor(total / share + 1e-9) for total in totals) >= actors

    if not need or fits(need):
        return need
    shares = {total / k for total in totals if total for k in range(1, actors + 1)}
    return max((share for share in shares if share < need and fits(share)), default=0.0)


def require_resources(
    needs: Resources,
    count: int,
    *,
    nodes: Sequence[Node] | None = None,
    what: str = "game",
) -> None:
    """Checks that a cluster has machines for games, before any is launched.

    One instance must fit on some machine that runs. GPUs and custom resources must suffice for all
    of them at once, unless machines can be added; processors and memory may be shared by more than
    fit, as on a laptop.

    Args:
        needs: of one instance.
        count: number of instances that run at once.
        nodes: machines of the cluster; None to ask the one that was joined.
        what: name of an instance in messages.

    Raises:
        ConfigError: no machine has what one instance needs, or all together have too little for
            ``count``; the message names the machine that has most.
    """
    nodes = read_nodes() if nodes is None else nodes
    asked = _asked(needs)
    for resource, amount in asked.items():
        biggest = max(nodes, key=lambda node: node.has(resource), default=Node("none", {}))
        if amount <= biggest.has(resource):
            continue
        if not biggest.has(resource):
            raise ConfigError(_unknown(what, resource, amount, nodes))
        raise ConfigError(
            f"each {what} needs {_text(resource, amount)}, and the biggest machine of the cluster, "
            f"{biggest.name}, has {_text(resource, biggest.has(resource))}; ask for less, or add "
            f"a bigger machine"
        )
    together = [node for node in nodes if _places(node, asked)]
    if not together:
        have = [f"{n.name} {_list({k: n.has(k) for k in asked})}" for n in nodes[:5]]
        raise ConfigError(
            f"each {what} needs {_list(asked)} on one machine, and no machine of the cluster has "
            f"all of it; they have: {'; '.join(have)}"
        )
    # What can be shared is left aside.
    kept = {k: v for k, v in asked.items() if k not in {"CPU", "memory"}}
    room = sum(_places(node, kept) for node in together)
    if room < count and not grows(nodes):
        raise ConfigError(
            f"{count} {what}s need {_list(asked)} each, and the cluster has room for {room:.0f}; "
            f"run fewer at once, or add machines"
        )


def require_bundles(
    bundles: Sequence[Mapping[str, float]], *, nodes: Sequence[Node] | None = None, what: str
) -> None:
    """Checks that a cluster has room for a placement group, for which Ray would wait forever.

    Args:
        bundles: resources by Ray's names; each bundle must fit on one machine, all at once.
        nodes: machines of the cluster; None for those of the cluster that was joined.
        what: name of the placement group's owner in messages.

    Raises:
        ConfigError: a bundle fits on no machine, or all together have too little.
    """
    nodes = read_nodes() if nodes is None else nodes
    total: Counter[str] = Counter()
    for bundle in bundles:
        custom = dict(bundle)
        own = {"cpus": custom.pop("CPU", 0.0), "gpus": custom.pop("GPU", 0.0)}
        memory = math.ceil(custom.pop("memory", 0.0) / _MIB)
        needs = Resources(memory_mb=memory, custom=custom, **own)
        require_resources(needs, 1, nodes=nodes, what=what)
        total.update(bundle)
    if grows(nodes):
        return
    for resource, amount in total.items():
        there = sum(node.has(resource) for node in nodes)
        if amount > there + 1e-3:
            raise ConfigError(
                f"each {what} needs {_text(resource, amount)} at once, and the cluster has "
                f"{_text(resource, there)}; ask for less, or add machines"
            )


def _asked(needs: Resources) -> dict[str, float]:
    asked = {"CPU": needs.cpus, "GPU": needs.gpus, "memory": float(needs.memory_mb * _MIB)}
    return {name: amount for name, amount in {**asked, **needs.custom}.items() if amount}


def _places(node: Node, asked: Mapping[str, float]) -> float:
    """Returns the number of instances that fit on a machine."""
    # Ray counts in ten-thousandths, so a third three times is a whole.
    return min((math.floor(node.has(k) / v + 1e-3) for k, v in asked.items()), default=math.inf)


def _unknown(what: str, resource: str, amount: float, nodes: Sequence[Node]) -> str:
    text = f"each {what} needs {_text(resource, amount)}, and no machine of the cluster has any"
    if resource in _OWN:
        return f"{text}; add a machine that has, or set the need to 0"
    # Ray gives every machine a resource of its own name, which no one means to ask for.
    names = {k for n in nodes for k in n.resources if k not in _OWN and not k.startswith("node:")}
    close = nearest(resource, names)
    there = f" (nearest that exist: {', '.join(close)})" if close else ""
    return f"{text}{there}; start machines with `ray start --resources '{{\"{resource}\": N}}'`"


def _text(resource: str, amount: float) -> str:
    return f"{amount / _MIB:.0f} MiB memory" if resource == "memory" else f"{amount:g} {resource}"


def _list(amounts: Mapping[str, float]) -> str:
    return ", ".join(_text(name, amount) for name, amount in amounts.items())
