"""Two Ray nodes on this machine, for tests and benchmarks that inject faults into them.

They have separate ports and folders. They are ended by their process trees, never by ``ray stop``,
which would end every Ray of the machine.
"""

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

SAID = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_ADDRESS", "GAMUT_RUNS_DIR")
HEAD_PORTS = ("--port", "--dashboard-port", "--ray-client-server-port")
NODE_PORTS = ("--node-manager-port", "--object-manager-port")
_RAY = """
import ray
from ray.scripts.scripts import main
from rollout.host.ray_start import agent_ports, known_ports
with agent_ports() as ports, known_ports(ray, ports):
    main()
"""
RAY = (sys.executable, "-c", _RAY)
"""The command ``ray``, whose nodes do not end themselves when their agents start slowly."""

UP = "Ray runtime started"
START_S = 120.0  # for a node to start, on a busy machine


PORTS_OF_OURS = range(20_000, 32_000)
"""Below those that the kernel assigns: one of them might be taken before a node listens there."""


def free_ports(number):
    """Returns ports that were free a moment ago."""
    with contextlib.ExitStack() as stack:
        held = []
        for port in random.sample(PORTS_OF_OURS, len(PORTS_OF_OURS)):
            with contextlib.suppress(OSError):
                held.append(stack.enter_context(socket.create_server(("", port))))
            if len(held) == number:
                return [each.getsockname()[1] for each in held]
    raise OSError(f"{number} ports of {PORTS_OF_OURS} were wanted, {len(held)} are free")


def kill_all(processes, signum=signal.SIGKILL):
    """Sends a signal to processes, as simultaneously as possible; returns their number."""
    sent = 0
    for each in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.send_signal(signum)
            sent += 1
    return sent


def tree_of(pid):
    """Returns a process and all its descendants; empty if it has gone."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def named(processes, word):
    """Returns the processes whose name or command contains a word."""
    found = []
    for each in processes:
        with contextlib.suppress(psutil.Error):
            if word in each.name() or word in " ".join(each.cmdline()):
                found.append(each)
    return found


class Networks:
    """Two network namespaces, each with one address, and a bridge between them that can be cut.

    The cut is silent: packets are lost without an error. Needs root.
    """

    def __init__(self):
        self._names = [f"gf{os.getpid()}{end}" for end in "abs"]
        self.addresses = ("10.231.77.1", "10.231.77.2")

    @staticmethod
    def why_not():
        """Returns why it is not available here; empty if it is."""
        missing = [each for each in ("ip", "bridge", "nsenter") if shutil.which(each) is None]
        if missing:
            return f"the commands {', '.join(missing)} are missing"
        if os.geteuid() != 0:
            return "network namespaces need root"
        try:
            with Networks():
                return ""
        except subprocess.CalledProcessError as error:
            return f"no network namespaces here: {error.stderr.strip()}"

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make(self):
        *ends, switch = self._names
        for name in self._names:
            _run("ip", "netns", "add", name)
            _run("ip", "-n", name, "link", "set", "lo", "up")
        _run("ip", "-n", switch, "link", "add", "name", "br0", "type", "bridge")
        _run("ip", "-n", switch, "link", "set", "br0", "up")
        for number, (name, address) in enumerate(zip(ends, self.addresses, strict=True)):
            port = f"p{number}"
            _run(*f"ip -n {name} link add e0 type veth peer name {port} netns {switch}".split())
            _run(*f"ip -n {name} addr add {address}/24 dev e0".split())
            _run(*f"ip -n {name} link set e0 up".split())
            _run(*f"ip -n {name} route add default dev e0".split())  # Ray asks which way is out
            _run(*f"ip -n {switch} link set {port} master br0".split())
            _run(*f"ip -n {switch} link set {port} up".split())

    def inside(self, number):
        """Returns the prefix of a command that runs it in a namespace."""
        return ["nsenter", f"--net=/run/netns/{self._names[number]}", "--"]

    def cut(self):
        """Drops every packet between the two from now on."""
        self._state(0)

    def heal(self):
        """Lets packets through again."""
        self._state(3)

    def _state(self, state):
        _run(*f"bridge -n {self._names[2]} link set dev p1 state {state}".split())

    def __exit__(self, *_):
        for name in self._names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def _run(*command):
    subprocess.run(command, capture_output=True, text=True, check=True)


class RayNode:
    """One node, i.e. one ``ray start --block`` and its descendants."""

    def __init__(self, command, folder, env):
        self.log = folder / "node.log"
        self._seen = {}
        self._folder = folder
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command,
                env=env,
                cwd=folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_S
        while UP not in self.log.read_text():
            if time.monotonic() > deadline or self.process.poll() is not None:
                self.close()
                raise AssertionError(f"a node did not come up: {self.log.read_text()}")
            threading.Event().wait(0.1)

    def tree(self):
        """Returns every process of the node that lives, also those whose parent has died."""
        for each in tree_of(self.process.pid):
            self._seen[each.pid] = each
        return [each for each in self._seen.values() if _lives(each)]

    @property
    def whole(self):
        """Whether it runs, including its raylet."""
        return self.process.poll() is None and any(p.name() == "raylet" for p in self.tree())

    @property
    def raylet(self):
        """The process that Ray calls so."""
        return next(each for each in self.tree() if each.name() == "raylet")

    def workers(self, word):
        """Returns its workers whose title has a word in it: the name of an actor's class."""
        return named(named(self.tree(), "ray::"), word)

    def close(self):
        """Ends it, first by SIGTERM, then by SIGKILL."""
        tree = self.tree()
        kill_all([each for each in tree if each.pid == self.process.pid], signal.SIGTERM)
        psutil.wait_procs(tree, timeout=8)
        kill_all(self.tree())
        psutil.wait_procs(tree, timeout=15)
        self.process.wait(timeout=15)


def _lives(process):
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class TwoNodes:
    """A head and a second node; actors are spread over both.

    Args:
        networks: namespaces for the two, so that the network between them can be cut.
        dashboard: whether the head takes jobs.
        cpus: processors that each declares.
        resources: further resources of each, as JSON.
        env: additional environment variables of both.

    Attributes:
        address: of the head, for ``ray.address``.
        url: of its dashboard.
        env: environment of drivers.
        head, second: the nodes.
    """

    def __init__(self, *, networks=None, dashboard=False, cpus=2, resources="{}", env=None):
        self._networks, self._dashboard = networks, dashboard
        self._has = (f"--num-cpus={cpus}", f"--resources={resources}")
        bare = {name: value for name, value in os.environ.items() if name not in SAID}
        path = f"{Path(sys.executable).parent}:{bare['PATH']}"
        self.env = {**bare, "PATH": path, "RAY_AUTH_MODE": "disabled", **(env or {})}
        self.head = self.second = None

    def __enter__(self):
        # Ray's sockets need short paths.
        self._folder = Path(tempfile.mkdtemp(prefix="gn-", dir="/tmp"))
        names = (*HEAD_PORTS, *NODE_PORTS)
        ports = dict(zip(names, free_ports(len(names)), strict=True))
        host = "127.0.0.1" if self._networks is None else self._networks.addresses[0]
        self.address = f"{host}:{ports['--port']}"
        self.url = f"http://127.0.0.1:{ports['--dashboard-port']}"
        shown = str(self._dashboard).lower()
        self._head = [
            *("--head", f"--include-dashboard={shown}", f"--temp-dir={self._folder}/r"),
            *(f"{name}={port}" for name, port in ports.items()),
        ]
        try:
            self.mend()
        except BaseException:
            self.__exit__()
            raise
        return self

    def mend(self):
        """Starts the nodes that do not run: at first both, later those that were killed."""
        if self.head is None or not self.head.whole:
            self.close()
            self.head = self._start(0, *self._head)
        if self.second is None or not self.second.whole:
            if self.second is not None:
                self.second.close()
            ports = zip(NODE_PORTS, free_ports(len(NODE_PORTS)), strict=True)
            given = [f"{name}={port}" for name, port in ports]
            self.second = self._start(1, f"--address={self.address}", *given)

    def _start(self, number, *options):
        folder = self._folder / str(number)
        folder.mkdir(exist_ok=True)
        command = [
            *(*RAY, "start", "--block", "--disable-usage-stats", *options),
            *(*self._has, "--num-gpus=0", "--object-store-memory=100000000"),
            *("--min-worker-port=0", "--max-worker-port=0"),
        ]
        if self._networks is not None:
            command.append(f"--node-ip-address={self._networks.addresses[number]}")
            command = [*self._networks.inside(number), *command]
        env = {**self.env, "RAY_scheduler_spread_threshold": "0"}
        return RayNode(command, folder, env)

    @property
    def inside(self):
        """Prefix of the command of a driver, so that it runs beside the head."""
        return [] if self._networks is None else self._networks.inside(0)

    def tree(self):
        """Returns every process of both nodes."""
        return [each for node in (self.head, self.second) if node for each in node.tree()]

    def close(self):
        """Ends both nodes."""
        for node in (self.second, self.head):
            if node is not None:
                node.close()
        self.head = self.second = None

    def __exit__(self, *_):
        self.close()
        shutil.rmtree(self._folder, ignore_errors=True)
