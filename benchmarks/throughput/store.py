"""Measures the trajectory store: bytes and CPU time per step, time to read a window.

Frames come from Crafter (64x64x3) and from a stack of four Atari frames (84x84x4), played at
random, or from a moving pattern where a game is not installed. ``append`` is the time on the
collecting thread; ``roll`` runs concurrently. CPU time of the process, one Arrow thread.

    python -m benchmarks.throughput.store
"""

import resource
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from gymnasium import spaces

from benchmarks.report import arguments, publish, table
from rollout.api import BridgeSpec, ColumnSpec, Factor, Fragment, Limits, Start, StateSpace, Task
from rollout.data import Dataset, DatasetWriter, describe_dataset

STATES = StateSpace((Factor("seed", range(10**6)),))
EPISODE = 500  # steps


class _NoEvaluator:
    requires: frozenset[str] = frozenset()

    def build(self, width: int) -> Any:
        raise NotImplementedError


def crafter(count: int) -> np.ndarray:
    import crafter

    env, rng, frames = crafter.Env(seed=1), np.random.default_rng(0), []
    frame, done = env.reset(), False
    while len(frames) < count:
        frames.append(frame)
        frame, _, done, _ = env.step(int(rng.integers(17)))
        frame = env.reset() if done else frame
    return np.ascontiguousarray(np.stack(frames))


def atari(count: int) -> np.ndarray:
    import ale_py
    import gymnasium
    from gymnasium import wrappers

    gymnasium.register_envs(ale_py)
    env = gymnasium.make("ALE/Breakout-v5", frameskip=1)
    env = wrappers.FrameStackObservation(wrappers.AtariPreprocessing(env), 4)
    env.action_space.seed(0)
    frame, _ = env.reset(seed=0)
    frames = []
    while len(frames) < count:
        frames.append(np.moveaxis(np.asarray(frame), 0, -1))
        frame, _, over, cut, _ = env.step(env.action_space.sample())
        frame = env.reset()[0] if over or cut else frame
    return np.ascontiguousarray(np.stack(frames))


def numbers(count: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(count, 8)).astype(np.float32)


def pattern(count: int, shape: tuple[int, ...]) -> np.ndarray:
    """Blocks of colour of which one moves: similar to a game made of tiles."""
    rng = np.random.default_rng(0)
    height, width, channels = shape
    tiles = rng.integers(0, 256, (-(-height // 8), -(-width // 8), channels), dtype=np.uint8)
    still = tiles.repeat(8, 0).repeat(8, 1)[:height, :width]
    frames = np.broadcast_to(still, (count, *shape)).copy()
    for t, frame in enumerate(frames):
        frame[t % (height - 8) :][:8, :8] = 255
    return frames


def fragments(frames: np.ndarray, steps: int, length: int, width: int) -> list[Fragment]:
    made, step, episode = [], 0, 0
    ones = np.ones((length, width))
    for k in range(steps // (length * width)):
        at = np.arange(k * length * width, (k + 1) * length * width) % len(frames)
        ends = step + length >= EPISODE
        mask = np.zeros((length, width), bool)
        mask[-1] = ends
        first = np.zeros((length, width), bool)
        first[0] = step == 0
        starts = tuple(
            Start(STATES.state(7), 1, episode + b, 0, "train-1000-ab12cd34") for b in range(width)
        )
        final = np.argwhere(mask)
        made.append(
            Fragment(
                instance=0,
                incarnation=0,
                starts=starts,
                start_index=np.tile(np.arange(width, dtype=np.int32), (length, 1)),
                step=np.tile((step + np.arange(length, dtype=np.int32))[:, None], (1, width)),
                observations={"observation": frames[at].reshape(length, width, *frames.shape[1:])},
                actions={"action": (ones * 3).astype(np.int64)},
                extras={"logp": ones.astype(np.float32), "value": ones.astype(np.float32)},
                reward=ones.astype(np.float32),
                progress=ones.astype(np.float32),
                outcome=np.zeros((length, width), np.int8),
                signals={"score": ones.astype(np.float32)},
                tick=np.tile(np.arange(length)[:, None], (1, width)),
                first=first,
                terminated=mask,
                truncated=np.zeros_like(mask),
                lost=np.zeros_like(mask),
                version=np.zeros(length, np.int64),
                wall_time=1.7e9 + np.arange(length) * 1e-3,
                latency=np.full(length, 1e-3, np.float32),
                final_index=final,
                final_observations={"observation": frames[: len(final)]},
                next_observations={},
            )
        )
        step = 0 if ends else step + length
        episode += width if ends else 0
    return made


def cpu(who: int = resource.RUSAGE_SELF) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def measure(
    frames: np.ndarray, codec: str, compression: str, journal_kind: str, args: Any, width: int
) -> list[str]:
    low, high = (0, 255) if frames.dtype == np.uint8 else (-np.inf, np.inf)
    space = spaces.Box(low, high, frames.shape[1:], frames.dtype.type)
    spec = BridgeSpec(
        "benchmark",
        "1",
        spaces.Dict({"observation": space}),
        spaces.Dict({"action": spaces.Discrete(17)}),
        STATES,
        {"score": ColumnSpec()},
    )
    task = Task("t", "", STATES, _NoEvaluator(), Limits())
    manifest = describe_dataset(
        spec,
        task,
        extras={"logp": ColumnSpec(), "value": ColumnSpec()},
        codec=codec,
        compression=compression,
    )
    steps = args.steps * (20 if frames.dtype != np.uint8 else 1)
    steps = steps // 5 if codec in ("png", "webp") else steps
    made = fragments(frames, steps, args.fragment, width)
    recorded = sum(f.env_steps for f in made)
    folder = Path(tempfile.mkdtemp(dir=args.dir))
    try:
        # One journal, written to a shard by close: so the two can be measured separately.
        writer = DatasetWriter(folder, manifest, shard_bytes=1 << 40, journal=journal_kind)
        begin, wall = cpu(), time.perf_counter()
        for fragment in made:
            writer.append(fragment)
        append, append_wall = cpu() - begin, time.perf_counter() - wall
        journal = sum(p.stat().st_size for p in (folder / "journal").iterdir())
        begin = cpu()
        writer.close()
        roll = cpu() - begin
        nbytes = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
        with Dataset(folder) as dataset:
            windows = dataset.windows(64, columns=["observation", "action", "reward"], seed=0)
            next(windows)
            begin = time.perf_counter()
            for _ in range(50):
                next(windows)
            window = (time.perf_counter() - begin) / 50
    finally:
        shutil.rmtree(folder)
    each = 1e6 / recorded
    return [
        f"{codec}, {compression}, {journal_kind}",
        f"{nbytes / recorded:.0f}",
        f"{journal / recorded:.0f}",
        f"{append * each:.1f}",
        f"{append_wall * each:.1f}",
        f"{roll * each:.1f}",
        f"{(append + roll) * each:.1f}",
        f"{window * 1e3:.2f}",
    ]


def variants(frames: np.ndarray, asked: list[str] | None) -> list[tuple[str, str, str]]:
    """Codec, compression of shards and of the journal, as the frames allow."""
    codecs = asked or ["png", "webp", "jpeg:95"]
    if frames.ndim != 4:
        codecs = []
    elif frames.shape[-1] == 4:
        codecs = [codec for codec in codecs if codec == "png"]
    plain = [("raw", "zstd", "lz4"), ("raw", "zstd", "none"), ("raw", "lz4", "none")]
    return plain + [(codec, "zstd", "lz4") for codec in codecs if codec != "raw"]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--steps", type=int, default=20_000, help="steps of each measurement")
    parser.add_argument("--fragment", type=int, default=64, help="steps of a fragment")
    parser.add_argument("--codec", action="append", help="default: raw, png, webp, jpeg:95")
    parser.add_argument("--dir", help="where to write; a temporary folder when not given")
    args = parser.parse_args()
    pa.set_cpu_count(1)
    report = []
    head = ["codec, shards, journal", "B/step", "journal B/step", "append us CPU", "append us wall"]
    head += ["roll us CPU", "both us CPU", "window of 64, ms"]
    games = {
        "crafter 64x64x3": (lambda: crafter(4000), (64, 64, 3), 1),
        "atari 84x84x4": (lambda: atari(4000), (84, 84, 4), 1),
        "8 numbers, width 64": (lambda: numbers(4000), (), 64),
    }
    for name, (play, shape, width) in games.items():
        try:
            frames, title = play(), name
        except ImportError:
            frames, title = pattern(4000, shape), f"pattern for {name}"
        rows = [measure(frames, *variant, args, width) for variant in variants(frames, args.codec)]
        size = f"{frames[0].nbytes} bytes a frame, fragments of {args.fragment} steps"
        report += [f"## {title}: {size}", "", table(head, rows)]
    publish("store", "Trajectory store: cost of recording", "\n".join(report), save=args.save)


if __name__ == "__main__":
    main()
