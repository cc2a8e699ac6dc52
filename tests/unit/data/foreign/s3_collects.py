"""Run with s3fs and moto: a collection writes to a local S3, whose dataset is read from there.

Arguments: an empty folder, and the packages of the environment, which come after our own.
"""

import json
import os
import sys
from pathlib import Path

folder = Path(sys.argv[1])
sys.path.append(sys.argv[2])
os.environ |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
os.environ["AWS_DEFAULT_REGION"] = "us-east-1"

import pytest  # noqa: E402
import s3fs  # noqa: E402
from moto.server import ThreadedMotoServer  # noqa: E402

from rollout import gamut  # noqa: E402
from rollout.data import Dataset  # noqa: E402
from rollout.errors import DatasetError  # noqa: E402

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
os.environ["AWS_ENDPOINT_URL"] = f"http://{host}:{port}"
system = s3fs.S3FileSystem(use_listings_cache=False)
system.mkdir("bucket")
address = "s3://bucket/runs/first"
run = gamut.collect(
    {"bridge": "fake", "policy": "random"},
    episodes=30,
    actors=0,
    output=str(folder / "run"),
    recording={"upload": address, "shard_mb": 1},
)
upload = json.loads((folder / "run/summary.json").read_text())["recording"]["upload"]
assert not upload["missing"], upload
local = folder / "run/dataset"
there = {p.removeprefix("bucket/runs/first/"): system.cat_file(p) for p in system.find("bucket")}
here = {str(p.relative_to(local)): p.read_bytes() for p in local.rglob("*") if p.is_file()}
here.pop("dataset.lock")
assert there == here
with Dataset(local) as one, Dataset(address) as other:
    names = [name for name in one.table().column_names if name != "progress"]  # NaN
    assert one.table(names).equals(other.table(names))
    assert len(other.episodes()) == 30
    ref = other.episodes()[3]
    assert (one.read(ref).columns["step"] == other.read(ref).columns["step"]).all()
server.stop()
with pytest.raises(DatasetError, match=address):  # before a game starts
    gamut.collect(folder / "run/config.yaml", episodes=32, resume=True)
