"""The files of configs/cluster/ and of monitoring, as far as no cluster is needed."""

import copy
import fnmatch
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name

import pytest
import yaml

from rollout.commands.gamut import COMMANDS
from rollout.config import load_config, parse_set

ROOT = Path(__file__).parents[2]
CLUSTER = ROOT / "configs" / "cluster"
MONITORING = ROOT / "configs" / "grafana" / "monitoring.yaml"
KUBERNETES = [
    *(CLUSTER / f"{name}.yaml" for name in ("kuberay", "rayjob", "rayservice", "kueue")),
    MONITORING,
]
DOCKERFILE = (CLUSTER / "Dockerfile").read_text()
FIELDS = yaml.safe_load((Path(__file__).parent / "cluster_fields.yaml").read_text())
GIB = 1 << 30
AMOUNT = re.compile(r"\d+(\.\d+)?(m|[KMGT]i?)?")


def documents(path):
    return list(yaml.safe_load_all(path.read_text()))


ALL = [document for path in KUBERNETES for document in documents(path)]


def of_kind(kind, documents=ALL):
    return [each for each in documents if each["kind"] == kind]


def launcher():
    return yaml.safe_load((CLUSTER / "ray_cluster.yaml").read_text())


def clusters():
    """The clusters of Ray by the kind of the document that they are in."""
    places = {"RayCluster": (), "RayJob": ("rayClusterSpec",), "RayService": ("rayClusterConfig",)}
    found = {}
    for kind, keys in places.items():
        (document,) = of_kind(kind)
        spec = document["spec"]
        for key in keys:
            spec = spec[key]
        found[kind] = spec
    return found


def groups(spec):
    return [spec["headGroupSpec"], *spec["workerGroupSpecs"]]


def container(group):
    (only,) = group["template"]["spec"]["containers"]
    return only


def ray_resources(group):
    """Custom resources of a group of KubeRay, which come as JSON in quotes."""
    text = group["rayStartParams"].get("resources", '"{}"')
    return json.loads(json.loads(text))


# --- Fields ---------------------------------------------------------------------------------------

TYPES = {
    "text": lambda x: isinstance(x, str),
    "number": lambda x: type(x) is int,
    "flag": lambda x: isinstance(x, bool),
    "amount": lambda x: type(x) is int or (isinstance(x, str) and bool(AMOUNT.fullmatch(x))),
    "texts": lambda x: all(isinstance(y, str) for y in x.values()),
}
TYPES["amounts"] = lambda x: all(TYPES["amount"](y) for y in x.values())


def wrong(value, shape, at="") -> list[str]:
    """What a value has that its shape does not allow, and what it lacks."""
    if isinstance(shape, str):
        return [] if TYPES[shape](value) else [f"{at}: expected {shape}, got {value!r}"]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{at}: expected a list"]
        return [w for n, each in enumerate(value) for w in wrong(each, shape[0], f"{at}[{n}]")]
    if not isinstance(value, dict):
        return [f"{at}: expected a mapping"]
    known = {name.removesuffix("!"): inner for name, inner in shape.items()}
    must = {name.removesuffix("!") for name in shape if name.endswith("!")}
    found = [f"{at}.{name}: unknown" for name in value.keys() - known.keys()]
    found += [f"{at}.{name}: missing" for name in must - value.keys()]
    for name in value.keys() & known.keys():
        found += wrong(value[name], known[name], f"{at}.{name}")
    return found


def wrong_in(document):
    document = dict(document)
    kind = f"{document.pop('apiVersion')} {document.pop('kind')}"
    return wrong(document, FIELDS["kinds"][kind], kind)


@pytest.mark.parametrize("path", KUBERNETES, ids=lambda path: path.name)
def test_documents_have_the_fields_of_their_kinds(path):
    assert [w for document in documents(path) for w in wrong_in(document)] == []


def test_a_wrong_field_is_found():
    document = copy.deepcopy(of_kind("RayCluster")[0])
    document["spec"]["headGroupSpec"]["template"]["spec"]["container"] = []
    document["spec"]["workerGroupSpecs"][0]["maxReplicas"] = "8"
    del document["spec"]["workerGroupSpecs"][1]["groupName"]
    at = "ray.io/v1 RayCluster.spec"
    assert sorted(wrong_in(document)) == [
        f"{at}.headGroupSpec.template.spec.container: unknown",
        f"{at}.workerGroupSpecs[0].maxReplicas: expected number, got '8'",
        f"{at}.workerGroupSpecs[1].groupName: missing",
    ]


# --- What the documents say to one another --------------------------------------------------------


def test_what_a_document_names_exists():
    names = {
        kind: {d["metadata"]["name"] for d in of_kind(kind)} for kind in {d["kind"] for d in ALL}
    }
    for spec in clusters().values():
        for group in groups(spec):
            pod = group["template"]["spec"]
            if "priorityClassName" in pod:
                assert pod["priorityClassName"] in names["PriorityClass"]
            mounts = [m["name"] for m in container(group)["volumeMounts"]]
            assert sorted(mounts) == sorted(v["name"] for v in pod["volumes"])
    (redis,), (service,) = of_kind("StatefulSet"), of_kind("Service")
    assert service["spec"]["selector"] == redis["spec"]["template"]["metadata"]["labels"]
    options = clusters()["RayCluster"]["gcsFaultToleranceOptions"]
    (port,) = service["spec"]["ports"]
    assert options["redisAddress"] == f"{service['metadata']['name']}:{port['port']}"
    (password,) = redis["spec"]["template"]["spec"]["containers"][0]["env"]
    assert options["redisPassword"]["valueFrom"] == password["valueFrom"]
    labels = of_kind("RayJob")[0]["metadata"]["labels"]
    assert labels["kueue.x-k8s.io/queue-name"] in names["LocalQueue"]
    assert labels["kueue.x-k8s.io/priority-class"] in names["WorkloadPriorityClass"]
    assert of_kind("LocalQueue")[0]["spec"]["clusterQueue"] in names["ClusterQueue"]
    for group in of_kind("ClusterQueue")[0]["spec"]["resourceGroups"]:
        for flavor in group["flavors"]:
            assert flavor["name"] in names["ResourceFlavor"]
            assert [r["name"] for r in flavor["resources"]] == group["coveredResources"]


def test_budgets_of_disruption_select_pods_that_there_always_are():
    (document,) = of_kind("RayCluster")
    spec, found = document["spec"], {}
    for budget in of_kind("PodDisruptionBudget"):
        selector = budget["spec"]["selector"]
        assert selector["matchLabels"]["ray.io/cluster"] == document["metadata"]["name"]
        chosen = [v for e in selector.get("matchExpressions", []) for v in e["values"]]
        least = [g["minReplicas"] for g in spec["workerGroupSpecs"] if g["groupName"] in chosen]
        assert len(least) == len(chosen)
        found[budget["metadata"]["name"]] = budget["spec"]["minAvailable"], sum(least) or 1
    assert len(found) == 2
    assert all(least == there for least, there in found.values()), "a drain would wait forever"


def test_jobs_of_kueue_are_as_its_webhook_wants_them():
    job = of_kind("RayJob")[0]["spec"]
    assert job["shutdownAfterJobFinishes"]
    assert "enableInTreeAutoscaling" not in job["rayClusterSpec"]
    assert all(g["minReplicas"] == g["replicas"] for g in job["rayClusterSpec"]["workerGroupSpecs"])


def test_every_cluster_asks_for_tokens_and_runs_the_ray_that_we_are_pinned_to():
    import ray

    for spec in clusters().values():
        assert spec["authOptions"]["mode"] == "token"
        assert spec["rayVersion"] == ray.__version__
        assert spec["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
        assert any(p["name"] == "gcs" for p in container(spec["headGroupSpec"])["ports"])
    config = launcher()
    for commands in ("head_start_ray_commands", "worker_start_ray_commands"):
        starts = [line for line in config[commands] if "ray start" in line]
        assert starts
        assert all("RAY_AUTH_MODE=token" in line for line in starts)


def test_images_are_targets_of_the_dockerfile_and_gpus_have_cuda():
    targets = set(re.findall(r"^FROM \S+ AS (\w+)$", DOCKERFILE, re.MULTILINE))
    assert {"cpu", "cuda", "minecraft"} <= targets
    seen = set()
    for kind in ("RayCluster", "RayJob"):
        for group in groups(clusters()[kind]):
            image = container(group)["image"]
            _, _, target = image.rpartition("-")
            has_gpu = "nvidia.com/gpu" in container(group)["resources"]["limits"]
            assert target == ("cuda" if has_gpu else "cpu"), "pods without a GPU need no CUDA"
            seen.add(image.removesuffix(target))
    assert len(seen) == 1


def test_runs_lie_on_shared_storage():
    for kind in ("RayCluster", "RayJob"):
        for group in groups(clusters()[kind]):
            pod = group["template"]["spec"]
            env = {e["name"]: e["value"] for e in container(group)["env"]}
            mounts = {m["mountPath"]: m["name"] for m in container(group)["volumeMounts"]}
            claims = {v["name"] for v in pod["volumes"] if "persistentVolumeClaim" in v}
            assert mounts[env["GAMUT_RUNS_DIR"]] in claims
            assert pod["terminationGracePeriodSeconds"] >= 60
    config = launcher()
    for commands in ("head_start_ray_commands", "worker_start_ray_commands"):
        starts = [line for line in config[commands] if "ray start" in line]
        assert all("GAMUT_RUNS_DIR=/" in line for line in starts)


# --- The Ray cluster launcher ---------------------------------------------------------------------


def test_the_launcher_takes_its_file():
    from ray.autoscaler._private.util import prepare_config, validate_config

    validate_config(prepare_config(launcher()))


def test_the_launcher_s_file_is_really_checked():
    from ray.autoscaler._private.util import prepare_config, validate_config

    config = launcher()
    config["head_node_type"] = "none"
    with pytest.raises(ValueError, match="head_node_type"):
        validate_config(prepare_config(config))


def test_kubernetes_and_the_launcher_have_the_same_machines():
    types = launcher()["available_node_types"]
    workers = {g["groupName"]: g for g in clusters()["RayCluster"]["workerGroupSpecs"]}
    assert types.keys() == {"head", *workers} == {"head", "games", "learners", "gpus"}
    assert types["head"]["resources"]["CPU"] == 0
    for name, group in workers.items():
        theirs = dict(types[name]["resources"])
        limits = container(group)["resources"]["limits"]
        assert theirs.pop("CPU") == int(limits["cpu"])
        assert theirs.pop("GPU", 0) == int(limits.get("nvidia.com/gpu", 0))
        assert theirs.pop("memory") <= int(limits["memory"].removesuffix("Gi")) * GIB
        assert theirs == ray_resources(group)
        assert types[name]["min_workers"] == group["minReplicas"] >= 1
        assert types[name]["max_workers"] == group["maxReplicas"]
    most = sum(each["max_workers"] for each in types.values())
    assert launcher()["max_workers"] >= most
    own = {g["groupName"]: g for g in clusters()["RayJob"]["workerGroupSpecs"]}
    assert {n: ray_resources(g) for n, g in own.items()} == {
        n: ray_resources(workers[n]) for n in own
    }


# --- Commands -------------------------------------------------------------------------------------


def test_the_entrypoint_of_the_job_is_a_valid_command():
    job = of_kind("RayJob")[0]["spec"]
    program, name, *words = shlex.split(job["entrypoint"])
    assert (program, words[0], words[2:4]) == ("gamut", "--config", ["--resume", "--set"])
    model = resolve_name(COMMANDS[name].config)
    config = load_config(model, ROOT / words[1], map(parse_set, words[4:]))
    there = [ray_resources(g) for g in job["rayClusterSpec"]["workerGroupSpecs"]]
    asked = {**json.loads(job["entrypointResources"])}
    for resources, count in (
        (config.host.resources, config.runners),
        (config.learners.resources, 1),
    ):
        for resource, amount in resources.items():
            asked[resource] = asked.get(resource, 0) + amount * count
    assert {"gamut_game", "gamut_learner", "gamut_driver"} <= asked.keys()
    for resource, amount in asked.items():
        assert sum(r.get(resource, 0) for r in there) >= amount, resource
    gpus = config.learners.gpus or 0
    assert gpus == 0, "no group of the job has a GPU"


def test_the_service_serves_what_the_documented_server_does():
    text = of_kind("RayService")[0]["spec"]["serveConfigV2"]
    documented = yaml.safe_load((ROOT / "configs" / "vlm" / "serve.yaml").read_text())
    documented.pop("http_options")
    assert yaml.safe_load(text) == documented


# --- The image ------------------------------------------------------------------------------------


def linted(tool, path):
    program = Path(sys.executable).parent / tool
    done = subprocess.run([program, path], capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.process
def test_a_linter_finds_nothing_in_the_dockerfile(tmp_path):
    assert linted("hadolint", CLUSTER / "Dockerfile") == (0, "")
    worse = tmp_path / "Dockerfile"
    worse.write_text(DOCKERFILE.replace("WORKDIR /opt/gamut", "WORKDIR gamut"))
    status, said = linted("hadolint", worse)
    assert status == 1
    assert "DL3000" in said


@pytest.mark.process
def test_a_linter_finds_nothing_in_the_script_of_slurm(tmp_path):
    assert linted("shellcheck", CLUSTER / "slurm.sh") == (0, "")
    worse = tmp_path / "slurm.sh"
    worse.write_text((CLUSTER / "slurm.sh").read_text().replace('exit "$status"', "exit $staus"))
    assert linted("shellcheck", worse)[0] == 1


def test_images_get_what_a_wheel_is_built_from():
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    assert patterns[0] == "*"
    kept = {line.removeprefix("!") for line in patterns if line.startswith("!")}
    project = (ROOT / "pyproject.toml").read_text()
    assert 'readme = "README.md"' in project
    assert kept == {
        *("LICENSE", "README.md", "constraints.txt", "pyproject.toml", "scripts"),
        *("bridges", "configs", "policies", "rollout"),
    }
    assert all((ROOT / name).exists() for name in kept)
    refused = [line for line in patterns[1:] if not line.startswith("!")]
    for path in ("rollout/__pycache__", "bridges/mineflayer/game/node_modules"):
        assert any(fnmatch.fnmatch(path, line) for line in refused), path
