"""How a session decides about authentication, and what it says of clusters that refuse it."""

import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest

from rollout.cluster import addresses
from rollout.cluster.addresses import (
    configured_mode,
    dashboard_url,
    find_token,
    is_this_machine,
    require_cluster,
    require_dashboard,
    set_mode,
    write_own_token,
)
from rollout.errors import ConfigError, InputError, RayUnavailable
from rollout.host import ray_start
from rollout.host.session import ray_session, require_session
from rollout.signals import Stop, Stopped

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[2]
VARIABLES = (
    "RAY_AUTH_MODE",
    "RAY_AUTH_TOKEN",
    "RAY_AUTH_TOKEN_PATH",
    "RAY_ADDRESS",
    "RAY_API_SERVER_ADDRESS",
    "RAY_JOB_CONFIG_JSON_ENV_VAR",
    "RAY_USE_TLS",
)


@pytest.fixture(autouse=True)
def environment(tmp_path, monkeypatch):
    """A user without wishes and without tokens; real Ray, if another test loaded it, hears nothing.

    Variables are set first and deleted then, so that those which the code sets go away, too.
    """
    for name in VARIABLES:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(addresses, "_ours", {})
    monkeypatch.setattr(addresses, "_update_ray", lambda: None)
    monkeypatch.setattr(addresses, "_ANSWER_S", 2.0)


CONFIGURATION = SimpleNamespace(Config=SimpleNamespace(initialize=lambda _: None))


def services_of_ray(**more):
    parts = ("gcs_server", "api_server", "log_monitor", "raylet")
    nothing = dict.fromkeys(["get_node", "start_ray_process", *(f"start_{p}" for p in parts)])
    return SimpleNamespace(**{**nothing, "time": time, **more})


@pytest.fixture
def inits(monkeypatch):
    """What Ray was asked to do, and the environment at that time; no Ray is started."""
    asked = []

    def init(**options):
        fake.initialized = True
        fake._private.utils.set_sigterm_handler(lambda *_: None)
        mode = os.environ.get("RAY_AUTH_MODE")
        asked.append((options, mode, os.environ.get("RAY_AUTH_TOKEN_PATH")))
        if fake.error is not None:
            raise fake.error

    def shutdown():
        fake.initialized = False

    fake = SimpleNamespace(
        _private=SimpleNamespace(
            utils=SimpleNamespace(set_sigterm_handler=partial(signal.signal, signal.SIGTERM)),
            services=services_of_ray(),
            worker=SimpleNamespace(_global_node=None, shutdown=None),
        ),
        _raylet=CONFIGURATION,
        init=init,
        shutdown=shutdown,
        is_initialized=lambda: fake.initialized,
        initialized=False,
        error=None,
    )
    monkeypatch.setitem(sys.modules, "ray", fake)
    return SimpleNamespace(asked=asked, ray=fake)


# --- What the environment asks for --------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "mode"),
    [("token", "token"), ("TOKEN", "token"), ("disabled", "disabled"), ("", None)],
)
def test_the_mode_is_that_of_the_environment(monkeypatch, value, mode):
    monkeypatch.setenv("RAY_AUTH_MODE", value)
    assert configured_mode() == mode


def test_a_mode_that_ray_does_not_have_is_refused(monkeypatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "tokn")
    with pytest.raises(ConfigError, match=r"RAY_AUTH_MODE=tokn: expected token or disabled; set t"):
        configured_mode()


def test_tokens_are_found_in_the_order_that_ray_has(tmp_path, monkeypatch):
    assert find_token() is None
    home = tmp_path / ".ray" / "auth_token"
    home.parent.mkdir()
    home.write_text("of home\n")
    assert (find_token().value, find_token().source) == ("of home", str(home))
    file = tmp_path / "file"
    file.write_text(" of file ")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(file))
    assert (find_token().value, find_token().source) == ("of file", str(file))
    monkeypatch.setenv("RAY_AUTH_TOKEN", "of variable")
    assert (find_token().value, find_token().source) == ("of variable", "RAY_AUTH_TOKEN")
    assert "of variable" not in repr(find_token())


def test_a_token_file_that_is_named_must_be_there(tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "none"))
    with pytest.raises(ConfigError, match=r"RAY_AUTH_TOKEN_PATH=.*none cannot be read: No such"):
        find_token()
    (tmp_path / "none").write_text("\n")
    with pytest.raises(ConfigError, match="is empty"):
        find_token()


def test_a_token_of_our_own_is_for_this_user_only(tmp_path):
    path = write_own_token(tmp_path)
    token = path.read_text()
    assert len(token) == 64
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.unlink()
    assert token != write_own_token(tmp_path).read_text()


def test_what_we_set_is_no_wish_of_the_user(tmp_path, monkeypatch):
    set_mode("token", tmp_path / "ours")
    assert os.environ["RAY_AUTH_MODE"] == "token"
    assert configured_mode() is None
    assert find_token() is None
    set_mode("disabled")
    assert os.environ["RAY_AUTH_MODE"] == "disabled"
    assert "RAY_AUTH_TOKEN_PATH" not in os.environ
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "theirs"))
    set_mode("token")
    assert configured_mode() == "token"
    assert os.environ["RAY_AUTH_TOKEN_PATH"] == str(tmp_path / "theirs")


@pytest.mark.process
def test_ray_hears_of_the_mode_even_when_it_was_imported_before(tmp_path):
    code = """
import sys
import tempfile
from pathlib import Path
import ray
from ray._raylet import AuthenticationTokenLoader, get_authentication_mode
from rollout.cluster.addresses import set_mode, write_own_token
modes = [int(get_authentication_mode())]
for folder in (tempfile.mkdtemp(), tempfile.mkdtemp()):
    path = write_own_token(Path(folder))
    set_mode("token", path)
    header = AuthenticationTokenLoader.instance().get_token_for_http_header()
    assert path.read_text() in str(header)
    modes.append(int(get_authentication_mode()))
set_mode("disabled")
modes.append(int(get_authentication_mode()))
print(modes)
"""
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before, first, second, after = json.loads(done.stdout)
    assert before == after
    assert first == second != before
    assert not (tmp_path / ".ray").exists()


# --- Sessions -----------------------------------------------------------------------------------


def test_a_cluster_of_our_own_gets_a_token_of_its_own(inits):
    with ray_session(num_cpus=2):
        assert inits.ray.initialized
    assert not inits.ray.initialized
    ((options, mode, path),) = inits.asked
    assert options["address"] == "local"
    assert options["num_cpus"] == 2
    assert mode == "token"
    assert len(Path(path).read_text()) == 64


def test_other_users_reach_none_of_its_files(inits):
    """Ray gives its folders mode 0777, so another user could take the place of its sockets."""
    with ray_session():
        ((options, _, token),) = inits.asked
        folder = Path(options["_temp_dir"])
        folder.mkdir(mode=0o777)
        assert folder.parent == Path(token).parent
        assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert not folder.exists()


@pytest.mark.parametrize("variable", ["RAY_TMPDIR", "TMPDIR"])
def test_its_files_are_where_the_user_wants_them(inits, monkeypatch, caplog, tmp_path, variable):
    monkeypatch.setattr(tempfile, "tempdir", None)
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        monkeypatch.setenv(variable, short)
        with ray_session():
            assert Path(inits.asked[-1][0]["_temp_dir"]).is_relative_to(short)
    long = tmp_path / ("x" * 50)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv(variable, str(long))
    with ray_session():
        folder = inits.asked[-1][0]["_temp_dir"]
    assert f"the path of {long} is too long for its sockets" in caplog.text
    # As in ray/_private/node.py; 7 digits is the most that Linux has for a process.
    assert len(f"{folder}/session_2026-01-01_00-00-00_123456_4194304/sockets/plasma_store") <= 107


@pytest.mark.parametrize("where", ["sleep", "start", "node", "import"])
def test_a_signal_ends_the_start_of_ray_wherever_it_waits(inits, monkeypatch, where):
    """And nothing of it is left, not even a part that Ray itself has not noted."""
    folder, parts = [], []
    monkeypatch.setattr("rollout.host.session.leave_abruptly", lambda: None)
    services = inits.ray._private.services = services_of_ray(
        get_node=lambda: pytest.fail("it asks for the node after the signal"),
        start_raylet=lambda: pytest.fail("it starts a part after the signal"),
        start_gcs_server=lambda: parts.append(
            subprocess.Popen(["sh", "-c", f"sleep 600 & wait; : {folder[0]}"])
        ),
        time=SimpleNamespace(sleep=lambda _: pytest.fail("it waits after the signal")),
    )

    def init(**options):
        folder.append(Path(options["_temp_dir"]))
        folder[0].mkdir()
        services.start_gcs_server()
        signal.raise_signal(signal.SIGTERM)
        match where:
            case "sleep":
                services.time.sleep(600)
            case "start":
                services.start_raylet()
            case "node":
                services.get_node()
            case "import":
                import a_module_that_does_not_exist  # noqa: F401
        pytest.fail("it went on")

    inits.ray.init = init
    with (
        Stop() as stop,
        pytest.raises(KeyboardInterrupt, match="SIGTERM"),
        stop.held(),
        ray_session(stopping=lambda: stop.signum),
    ):
        pytest.fail("it started")
    assert parts[0].wait(10) == -signal.SIGKILL
    assert not folder[0].parent.exists()
    assert "RAY_raylet_start_wait_time_s" not in os.environ, "Ray's processes would inherit it"


def test_ray_does_not_replace_the_handler_of_a_program(inits):
    """A signal that came while Ray started ended nothing, or Ray in the middle of its start."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        with Stop() as stop:
            with pytest.raises(Stopped), stop.held(), ray_session():
                signal.raise_signal(signal.SIGTERM)
            assert not inits.ray.initialized
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with ray_session():
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)


def test_it_says_what_takes_the_seconds(inits, caplog):
    caplog.set_level("INFO", "rollout")
    with ray_session():
        assert caplog.messages == ["loading Ray", "starting Ray on this machine"]


def test_no_file_is_left_to_ray_where_the_user_asks_for_tokens_and_has_none(inits, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    with ray_session():
        pass
    ((_, mode, path),) = inits.asked
    assert mode == "token"
    assert len(Path(path).read_text()) == 64


def test_the_wishes_of_the_user_are_kept(inits, tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with ray_session("local"):
        pass
    theirs = tmp_path / "theirs"
    theirs.write_text("secret")
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(theirs))
    with ray_session():
        pass
    assert [(mode, path) for _, mode, path in inits.asked] == [
        ("disabled", None),
        ("token", str(theirs)),
    ]


def test_two_sessions_in_turn_do_not_share_a_token(inits):
    with ray_session():
        pass
    with ray_session():
        pass
    (_, _, one), (_, _, other) = inits.asked
    assert one != other


def test_a_ray_that_runs_already_is_used_and_left_alone(inits):
    inits.ray.initialized = True
    with ray_session("10.0.0.1:6379"):
        pass
    assert inits.ray.initialized
    assert not inits.asked


def test_in_a_job_ray_is_given_nothing_that_the_job_says_already(inits, monkeypatch, head):
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    monkeypatch.setenv("RAY_ADDRESS", head.address)
    monkeypatch.setenv("GAMUT_RUN_ID", "run-7")
    with ray_session():
        pass
    ((options, mode, _),) = inits.asked
    assert not options.keys() & {"address", "namespace", "num_cpus"}
    assert options["runtime_env"] == {"env_vars": {"GAMUT_RUN_ID": "run-7"}}
    assert mode == "disabled"


def test_the_address_of_the_environment_is_joined(inits, monkeypatch, head):
    monkeypatch.setenv("RAY_ADDRESS", head.address)
    with ray_session():
        pass
    ((options, mode, _),) = inits.asked
    assert options["address"] == head.address
    assert mode == "disabled"


@pytest.mark.parametrize("token", [None, "secret"])
def test_auto_is_found_and_asked_like_any_other(inits, monkeypatch, head, token):
    head.token = token
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    monkeypatch.setattr("rollout.host.session._running_here", lambda _: head.address)
    with ray_session("auto"):
        pass
    ((options, mode, _),) = inits.asked
    assert options["address"] == head.address
    assert mode == ("token" if token else "disabled")


def test_auto_where_nothing_runs_is_reported(inits, monkeypatch):
    def none(_):
        raise ConnectionError("Could not find any running Ray instance")

    services = SimpleNamespace(canonicalize_bootstrap_address_or_die=none)
    monkeypatch.setitem(sys.modules, "ray._private", SimpleNamespace(services=services))
    monkeypatch.setitem(sys.modules, "ray._private.services", services)
    with (
        pytest.raises(ConfigError, match=r"ray\.address=auto: no cluster runs here"),
        ray_session("auto"),
    ):
        pass
    assert not inits.asked


def test_a_cluster_with_tokens_is_joined_after_one_without(inits, monkeypatch, head):
    with ray_session(head.address):
        pass
    head.token = "secret"
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    with ray_session(head.address):
        pass
    assert [mode for _, mode, _ in inits.asked] == ["disabled", "token"]


def test_a_program_can_ask_first_and_change_nothing(inits, monkeypatch, head):
    monkeypatch.setattr("rollout.host.session._running_here", lambda _: head.address)
    for address in (None, "local", "auto", head.address):
        require_session(address)
    monkeypatch.setenv("RAY_ADDRESS", head.address)
    require_session()
    head.token = "secret"
    for address, key in ((None, "RAY_ADDRESS"), (head.address, r"ray\.address")):
        with pytest.raises(ConfigError, match=f"{key}={head.address} asks for a token"):
            require_session(address)
    assert not inits.asked
    assert "RAY_AUTH_MODE" not in os.environ
    inits.ray.initialized = True
    require_session(head.address)


@pytest.mark.parametrize(
    "error",
    [
        ConnectionError("Could not find any running Ray instance"),
        RuntimeError("Version mismatch: the cluster was started with Ray: 2.40.0"),
    ],
)
def test_what_ray_says_of_a_cluster_is_input(inits, head, error):
    inits.ray.error = error
    with pytest.raises(ConfigError, match=f"cannot be joined: {error}"), ray_session(head.address):
        pass


def test_a_ray_that_cannot_start_here_is_no_wrong_input(inits):
    inits.ray.error = Exception("The current node timed out during startup")
    with pytest.raises(
        RayUnavailable, match=r"cannot start on this machine: The .* give ray\.address.*--resume"
    ) as caught:
        ray_session().__enter__()
    assert not isinstance(caught.value, InputError)
    assert not inits.ray.initialized


class Raylet:
    """A raylet that is known to the head after ``calls`` requests, or ends before."""

    def __init__(self, calls, status=None):
        self.calls, self.status, self.process = calls, status, self
        self.ports, self.lines = {}, []

    def start(self, **ports):
        self.ports = ports
        for kind in ("log_monitor", "raylet"):
            self.services.start_ray_process([kind], kind)
        return self

    def poll(self):
        return self.status

    def get_node(self, *_):
        self.calls -= 1
        if self.calls > 0:
            raise RuntimeError("no node is registered")
        return "node"


def started(raylet, stopping=lambda: 0):
    """What Ray gets that asks for its node; Ray itself gives up after 30 s."""
    raylet.services = services = services_of_ray(
        get_node=raylet.get_node,
        start_raylet=raylet.start,
        start_ray_process=lambda line, kind: raylet.lines.append((kind, line)),
    )
    before = dict(vars(services))
    ray = SimpleNamespace(_private=SimpleNamespace(services=services), _raylet=CONFIGURATION)
    try:
        with (
            ray_start.agent_ports() as ports,
            ray_start.known_ports(ray, ports),
            ray_start.extended_timeouts(ray, stopping),
        ):
            services.start_raylet()
            return services.get_node()
    finally:
        assert vars(services) == before


def test_a_busy_machine_may_take_minutes_to_start_ray(monkeypatch, caplog):
    monkeypatch.setattr(ray_start, "_AGAIN_S", 0.01)
    monkeypatch.setattr(ray_start, "_LOG_S", 0.02)
    for name in ray_start._PATIENCE:
        monkeypatch.setenv(name, "7")
        monkeypatch.delenv(name)
    assert started(Raylet(20)) == "node"
    assert "because this machine is busy" in caplog.text
    assert {os.environ[name] for name in ray_start._PATIENCE} == {"300", "300000"}
    with pytest.raises(RayUnavailable, match="its raylet ended with status -9"):
        started(Raylet(10**9, status=-9))
    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        started(Raylet(10**9), stopping=lambda: signal.SIGTERM)
    monkeypatch.setattr(ray_start, "LONGEST_S", 0.05)
    with pytest.raises(RayUnavailable, match="has not started in"):
        started(Raylet(10**9))


def test_a_raylet_does_not_wait_for_the_ports_of_its_agents():
    """It ends itself when they take over 15 s to start; Ray has no setting for that."""
    raylet = Raylet(1)
    started(raylet)
    names = ["metrics_agent", "metrics_export", "runtime_env_agent", "dashboard_agent_listen"]
    assert set(raylet.ports) == {f"{name}_port" for name in names}
    listen = f"--dashboard_agent_listen_port={raylet.ports['dashboard_agent_listen_port']}"
    assert raylet.lines == [("log_monitor", ["log_monitor"]), ("raylet", ["raylet", listen])]
    assert len(set(raylet.ports.values())) == 4


def test_ports_of_agents_are_theirs_alone():
    with ray_start.agent_ports() as ports:
        for port in ports.values():
            with (
                socket.socket() as other,
                pytest.raises(OSError, match="Address already in use"),
            ):
                other.bind(("", port))
            with socket.create_server(("127.0.0.1", port)):  # as an agent does
                pass
    with socket.socket() as other:
        other.bind(("", port))


def test_other_errors_of_ray_are_not_taken_for_input(inits, head):
    inits.ray.error = RuntimeError("a bug")
    with pytest.raises(RuntimeError, match="a bug") as caught, ray_session(head.address):
        pass
    assert not isinstance(caught.value, ConfigError)


# --- Asking a head ------------------------------------------------------------------------------


@pytest.fixture
def head():
    """A server that answers as the head of a cluster does; ``token`` is what it asks for."""
    state = SimpleNamespace(token=None, asked=[])

    def alive(request, context):
        metadata = dict(context.invocation_metadata())
        state.asked.append(metadata.get("authorization"))
        if state.token and metadata.get("authorization") != f"Bearer {state.token}":
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "InvalidAuthToken: missing or incorrect")
        return b"\n\x00"

    method = grpc.unary_unary_rpc_method_handler(alive)
    service = "ray.rpc.NodeInfoGcsService"
    handler = grpc.method_handlers_generic_handler(service, {"CheckAlive": method})
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((handler,))
    state.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield state
    server.stop(None).wait(10)


def test_a_cluster_without_tokens_is_asked_once_and_sent_none(head, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    assert require_cluster(head.address) == "disabled"
    assert head.asked == [None]


def test_a_cluster_with_tokens_gets_ours(head, monkeypatch):
    head.token = "secret"
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    assert require_cluster(head.address) == "token"
    assert head.asked == [None, "Bearer secret"]


@pytest.mark.parametrize(
    ("theirs", "env", "said"),
    [
        ("secret", {}, "asks for a token, and there is none: the head has it in"),
        ("secret", {"RAY_AUTH_TOKEN": "bad"}, "refuses the token from RAY_AUTH_TOKEN"),
        (
            "secret",
            {"RAY_AUTH_MODE": "disabled"},
            "RAY_AUTH_MODE=disabled: set RAY_AUTH_MODE=token",
        ),
        (None, {"RAY_AUTH_MODE": "token"}, "RAY_AUTH_MODE=token, and there is no token"),
        (None, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "x"}, "set RAY_AUTH_MODE=disabled"),
    ],
)
def test_what_does_not_fit_together_is_reported(head, monkeypatch, theirs, env, said):
    head.token = theirs
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError) as caught:
        require_cluster(head.address)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("localhost", "expected HOST:PORT, e.g. 10.0.0.1:6379"),
        ("localhost:port", "expected HOST:PORT"),
        ("localhost:99999", "expected HOST:PORT"),
        ("localhost:1/path", "expected HOST:PORT"),
        ("http://localhost:8265", "send one by gamut submit --address http://localhost:8265"),
    ],
)
def test_an_address_that_is_none_is_reported(address, said):
    with pytest.raises(ConfigError, match=r"ray\.address=") as caught:
        require_cluster(address)
    assert said in str(caught.value)


def test_where_nobody_listens_is_reported():
    with pytest.raises(ConfigError, match="no cluster answers there \\(Connection refused\\)"):
        require_cluster(f"127.0.0.1:{free_port()}")


def test_who_is_no_head_is_reported(dashboard):
    with pytest.raises(ConfigError, match="what answers there is no head of a Ray cluster"):
        require_cluster(dashboard.url.removeprefix("http://"))


def test_who_never_answers_is_reported(monkeypatch):
    monkeypatch.setattr(addresses, "_ANSWER_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        target = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ConfigError, match="no head of a Ray cluster"):
            require_cluster(target)
        with pytest.raises(ConfigError, match="no dashboard answers there \\(timed out\\)"):
            require_dashboard(f"http://{target}")


def test_clients_and_tls_are_only_looked_for(head, monkeypatch):
    assert require_cluster(f"ray://{head.address}") == "disabled"
    monkeypatch.setenv("RAY_USE_TLS", "1")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    assert require_cluster(head.address) == "token"
    assert not head.asked


# --- Asking a dashboard -------------------------------------------------------------------------


@pytest.fixture
def dashboard():
    """A server that answers as a dashboard does."""
    state = SimpleNamespace(token=None, asked=[], answer=(200, b'{"ray_version": "2.60.0"}'))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            given = self.headers.get("Authorization")
            state.asked.append((self.path, given))
            status, body = state.answer
            if state.token and given is None:
                status, body = 401, b"Unauthorized: Missing authentication token"
            elif state.token and given != f"Bearer {state.token}":
                status, body = 403, b"Forbidden: Invalid authentication token"
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    yield state
    server.shutdown()
    thread.join(10)
    server.server_close()


def test_a_dashboard_without_tokens_is_sent_none(dashboard, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    found = require_dashboard(dashboard.url)
    assert (found.url, found.ray_version, found.token) == (dashboard.url, "2.60.0", None)
    assert dashboard.asked == [("/api/version", None)]


def test_a_dashboard_with_tokens_gets_ours(dashboard, monkeypatch):
    dashboard.token = "secret"
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    assert require_dashboard(dashboard.url).token.value == "secret"


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({}, "asks for a token, and there is none"),
        ({"RAY_AUTH_TOKEN": "bad"}, "refuses the token from RAY_AUTH_TOKEN"),
        ({"RAY_AUTH_MODE": "disabled"}, "RAY_AUTH_MODE=disabled: set RAY_AUTH_MODE=token"),
    ],
)
def test_a_dashboard_that_refuses_us_is_reported(dashboard, monkeypatch, env, said):
    dashboard.token = "secret"
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError) as caught:
        require_dashboard(dashboard.url)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("answer", [(404, b"no"), (200, b"<html>"), (200, b"[]"), (200, b"{}")])
def test_who_is_no_dashboard_is_reported(dashboard, answer):
    dashboard.answer = answer
    with pytest.raises(ConfigError, match=f"is no dashboard of Ray \\(status {answer[0]}\\)"):
        require_dashboard(dashboard.url)


def test_who_does_not_speak_http_is_reported(head):
    with pytest.raises(ConfigError, match=r"no dashboard of Ray|no dashboard answers"):
        require_dashboard(f"http://{head.address}")


def test_a_dashboard_that_is_not_there_is_reported():
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(ConfigError, match=f"{url}: no dashboard answers there \\(Connection ref"):
        require_dashboard(url)


@pytest.mark.parametrize(
    ("given", "env", "url"),
    [
        (None, {}, "http://127.0.0.1:8265"),
        ("head", {}, "http://head:8265"),
        ("head:80", {}, "http://head:80"),
        ("http://head:80/", {}, "http://head:80"),
        ("http://head", {}, "http://head:8265"),
        ("https://gate.example/ray/", {}, "https://gate.example/ray"),
        ("[::1]:80", {}, "http://[::1]:80"),
        ("head:1", {"RAY_API_SERVER_ADDRESS": "http://other:2"}, "http://head:1"),
        (None, {"RAY_API_SERVER_ADDRESS": "http://other:2"}, "http://other:2"),
        (None, {"RAY_ADDRESS": "http://third:3"}, "http://third:3"),
        (None, {"RAY_ADDRESS": "third:6379"}, "http://third:8265"),
        (None, {"RAY_ADDRESS": "auto"}, "http://127.0.0.1:8265"),
    ],
)
def test_dashboards_are_named_in_many_ways(monkeypatch, given, env, url):
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert dashboard_url(given) == url


@pytest.mark.parametrize("given", ["ray://head:10001", "ftp://head", "http://", "head:port"])
def test_an_address_of_something_else_is_refused(given):
    with pytest.raises(ConfigError, match=r"--address=.*: expected the URL of the dashboard"):
        dashboard_url(given)


def test_this_machine_is_known():
    assert is_this_machine("http://127.0.0.1:8265")
    assert is_this_machine("http://localhost:8265")
    assert not is_this_machine("http://192.0.2.200:8265")
    assert not is_this_machine("http://nowhere.invalid:8265")
