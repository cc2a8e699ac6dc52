"""Rows with two Ray nodes: one dies, both die, the network is cut, a job is stopped."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import psutil
from ray.dashboard.modules.job.sdk import JobSubmissionClient

from benchmarks.faults.check import Row, checked, left_after
from benchmarks.faults.cluster import Networks, TwoNodes, kill_all
from benchmarks.faults.runs import LONG_S, ROOT, Run, pause, wait_until

CUT_S = 20.0
# A silent node is declared dead within about ten seconds, instead of about a minute.
HASTY = {
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "3",
}
# Fragments of more than 100 KB stay in the memory of the node that made them.
BIG = {"width": 32, "fragment": {"steps": 128}, "bridge": {"mean_steps": 60}, "episodes": 1200}


def _run_on(cluster: TwoNodes, folder: Path, settings: Mapping[str, object]) -> Run:
    return Run(
        folder,
        {**settings, "ray": {"address": cluster.address}},
        env=cluster.env,
        inside=cluster.inside,
    )


def both_play(cluster: TwoNodes) -> bool:
    """Whether a host plays on each of the two nodes."""
    return all(node.workers("OneThreadHost") for node in (cluster.head, cluster.second))


def raylet(folder: Path) -> Row:
    """The raylet of the second node; everything that ran there ends with it."""
    with TwoNodes(env={"TMPDIR": str(folder / "t")}) as cluster:
        run = _run_on(cluster, folder, BIG)
        run.begin()
        wait_until(lambda: both_play(cluster) or not run.alive, "a host on each node")
        run.until(100)
        below = cluster.second.tree()
        cluster.second.raylet.kill()
        _, stayed = psutil.wait_procs([p for p in below if p.name() == "raylet"], timeout=10)
        run.end()
        return checked(
            run,
            "the raylet of the second of two nodes",
            "kill -9, once" if not stayed else "kill -9 did not end it",
            cause=r"host \d+ failed",
        )


def whole_cluster(folder: Path) -> Row:
    """The driver, both nodes and all workers at once; then a new cluster and ``--resume``."""
    env = {"TMPDIR": str(folder / "t")}
    with TwoNodes(env=env) as cluster:
        run = _run_on(cluster, folder, {"episodes": 200})
        run.begin()
        wait_until(lambda: both_play(cluster) or not run.alive, "a host on each node")
        run.until(40)
        killed = kill_all([*run.tree(), *cluster.tree()])
        run.end()
        gone, before = left_after(run), run.finished()
    with TwoNodes(env=env) as cluster:
        run.settings["ray"] = {"address": cluster.address}
        run.begin()
        run.end()
        return checked(
            run,
            "all at once: driver, both raylets, GCS, all workers",
            f"kill -9 of {killed} processes; {before} episodes were on disk",
            cause="",
            before=gone,
        )


def _cut(
    folder: Path, fault: str, cause: str, env: Mapping[str, str], seconds: float, episodes: int
) -> Row:
    folder_env = {"TMPDIR": str(folder / "t"), **env}
    with Networks() as networks, TwoNodes(networks=networks, env=folder_env) as cluster:
        run = _run_on(cluster, folder, {**BIG, "episodes": episodes})
        run.begin()
        wait_until(lambda: both_play(cluster) or not run.alive, "a host on each node")
        run.until(100)
        far = cluster.second.workers("OneThreadHost")
        before = run.finished()
        networks.cut()
        pause(seconds)
        meanwhile = run.finished() - before
        networks.heal()
        note = f"{meanwhile} episodes came from the near side meanwhile"
        if cause:
            note += f"; {_end_of(far)}"
        run.end()
        injected = f"every packet between the two lost for {seconds:g} s"
        return checked(run, fault, injected, cause=cause, note=note)


def _end_of(hosts: list[psutil.Process]) -> str:
    """Reports how soon the abandoned hosts ended, once the network was back."""
    began = time.monotonic()
    _, stayed = psutil.wait_procs(hosts, timeout=60)
    if stayed:
        return "the hosts that were given up still ran 60 s after the network was back"
    return f"the hosts given up ended {time.monotonic() - began:.0f} s after the network was back"


def network_cut(folder: Path) -> Row:
    """A cut that ends before Ray declares the other side dead."""
    return _cut(folder, "network cut between two nodes", "", {}, CUT_S, 1200)


def network_cut_and_declared_dead(folder: Path) -> Row:
    """A cut after which Ray declares the node dead.

    The run is long enough for the network to return: until then the far side cannot know that it
    was abandoned, and its games run until its Ray declares the head dead, after a minute.
    """
    fault = "network cut, the node is declared dead after 10 s"
    return _cut(folder, fault, r"host \d+ failed", HASTY, CUT_S, 4800)


def job(folder: Path) -> Row:
    """SIGTERM to a job, by ``ray job stop``; then the same job again."""
    with TwoNodes(dashboard=True, env={"TMPDIR": str(folder / "t")}) as cluster:
        run = Run(folder, {"episodes": 300}, env=cluster.env)
        script = [str(ROOT / "scripts/collect.py"), *run.command()[2:]]  # the job's own Python
        (empty := folder / "w").mkdir()
        command = [sys.executable, "scripts/submit.py", "--address", cluster.url]
        command += ["--working-dir", str(empty), "--runs-dir", str(folder)]
        command += ["--", "python", *script]

        def submit() -> None:
            with run.said.open("ab") as said:
                run.driver = subprocess.Popen(
                    command, cwd=ROOT, env=run.env, stdout=said, stderr=said
                )

        submit()
        run.until(30)
        client = JobSubmissionClient(cluster.url)
        name = client.list_jobs()[0].submission_id
        client.stop_job(name)
        run.end()
        before, gone = run.summary(), left_after(run)
        submit()
        run.end(LONG_S)
        row = checked(
            run,
            "SIGTERM to a job",
            "`ray job stop`, once",
            cause="stopped by SIGTERM",
            note=f"it had saved {before['results']['episodes']} ({before['status']})",
            before=gone,
        )
        if run.sessions[0] != 143:
            row.wrong.append(f"the stopped job ended with {run.sessions[0]} instead of 143")
        return row
