"""Measures one local model behind many games: does it fill its batches, does a game wait?

*Batches*: answers per second of the small model of configs/vlm/sft_minigrid.yaml, with new weights,
by the number of requests that are answered at once. *Games*: 16 games in processes of their own
whose steps take 0.15 s in the median (log-normal, up to 5 s), behind one such model; beside it the
same games in lock-step, where each batch waits for the slowest game.

    python -m benchmarks.throughput.vlm_local
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch

from benchmarks.report import arguments, publish, table
from benchmarks.throughput.playing import count, fragments, playing
from bridges.chaos import ChaosBridge
from policies.vlm import VlmPolicy
from policies.vlm.options import History, Limits
from rollout.api import Call, Splits, Start, Task
from rollout.config import HostConfig
from rollout.evaluators import GameReward
from rollout.host import PlayOptions
from rollout.models.client import Request
from rollout.models.local import LocalModel
from rollout.models.sections import Local, Sampling
from rollout.models.tiny import Sizes, build

GAMES, TOKENS = 16, 4
MEDIAN_S, SIGMA, MOST_S = 0.15, 1.2, 5.0
FIELDS = {"temperature": 1.0, "max_tokens": TOKENS}


def requests(count: int) -> list[Request]:
    """Requests with a picture of 112 x 112."""
    frame = np.random.default_rng(0).integers(0, 256, (112, 112, 3), np.uint8)
    file = bytes(cv2.imencode(".png", frame)[1])
    parts = [{"type": "image", "digest": "x"}, {"type": "text", "text": "Act:"}]
    messages = [{"role": "user", "content": parts}]
    return [Request(FIELDS, messages, {"x": file}, "image/png", [n]) for n in range(count)]


def answers_per_second(model: LocalModel, count: int, seconds: float) -> float:
    """Answers of ``TOKENS`` tokens per second, ``count`` at once."""
    asked = requests(count)
    model.answer(asked)
    began, made = time.monotonic(), 0
    while (now := time.monotonic()) - began < seconds:
        made += len(model.answer(asked))
    return made / (now - began)


class Counted(LocalModel):
    """A local model that notes the size and the seconds of its batches."""

    sizes: list[int]
    took: list[float]

    def answer(self, requests: Sequence[Request]) -> list[Call]:
        """Answers as ``LocalModel`` does."""
        began = time.monotonic()
        found = super().answer(requests)
        self.sizes.append(len(requests))
        self.took.append(time.monotonic() - began)
        return found


def play(folder: str, seconds: float) -> tuple[float, list[int], list[float]]:
    """Steps per second of all games, and the sizes and seconds of the batches."""
    bridge = ChaosBridge(step_latency=f"lognormal({MEDIAN_S}, {SIGMA}, {MOST_S})")
    task = Task("chaos", "Play.", bridge.spec.state_space, GameReward())
    recipe = VlmPolicy(
        local=Local(model=folder),
        prompt="act",
        fallback="random",
        history=History(texts=0),
        limits=Limits(reparse=0, unusable=None),
        sampling=Sampling(max_tokens=TOKENS),
    )
    policy = recipe.build(bridge.spec, task, seed=0)
    model: Any = policy._model
    model.__class__, model.sizes, model.took = Counted, [], []
    states = Splits(bridge.spec.state_space).take("train", 1)
    begins = [Start(states[0], number, number) for number in range(100 * GAMES)]
    setup = {"host": HostConfig(), "play": PlayOptions(4), "begins": begins}
    with playing(bridge, task, policy, (GAMES, 1), **setup) as player:
        rate = count(fragments(player), GAMES, seconds).rate
    return rate, model.sizes, model.took


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        folder = f"{place}/model"
        build(Path(folder), Sizes(), ["Act: <action>go</action>"], seed=0)
        model = LocalModel(Local(model=folder), images=True)
        rates = {n: answers_per_second(model, n, args.seconds / 10) for n in (1, 8, 16, 32)}
        rate, sizes, took = play(folder, args.seconds)
    rng = np.random.default_rng(0)
    normal = rng.standard_normal((20_000, GAMES))
    drawn = np.minimum(MEDIAN_S * np.exp(SIGMA * normal), MOST_S)
    decision = float(np.median(took))
    ideal = GAMES / (float(drawn.mean()) + decision)
    lock_step = GAMES / (float(drawn.max(1).mean()) + decision)
    text = f"Answers of {TOKENS} tokens per second, one torch thread:\n\n"
    text += table(["at once", "answers/s"], [[str(n), f"{r:.1f}"] for n, r in rates.items()])
    text += (
        f"\n{GAMES} games whose steps take {drawn.mean():.2f} s on average, {MOST_S:g} s at most; "
        f"a batch took {decision:.3f} s (median). Ideal: {GAMES} / (step + batch).\n\n"
    )
    rows = [
        ["measured", f"{rate:.1f}", f"{rate / ideal:.1%}"],
        ["lock-step, computed", f"{lock_step:.1f}", f"{lock_step / ideal:.1%}"],
    ]
    text += table(["games", "steps/s", "of the ideal"], rows)
    text += f"\nRequests per batch: {np.mean(sizes):.1f} on average, {max(sizes)} at most.\n"
    publish("vlm_local", "One local model behind many games", text, save=args.save)


if __name__ == "__main__":
    main()
