"""What does not fit a dataset is refused, and named."""

import numpy as np
import pytest
from gymnasium import spaces
from store_fragments import EXTRAS, Player, frames, make_manifest, make_spec

from rollout.api import ColumnSpec
from rollout.data import Dataset, DatasetWriter, describe_dataset, read_manifest
from rollout.errors import DatasetError


def test_every_difference_of_schema_is_named(tmp_path):
    DatasetWriter(tmp_path, make_manifest()).close()
    spec = make_spec(
        {"rgb": frames(7, 8, 3), "compass": spaces.Box(-2, 1, (3,)), "extra": frames(9, 9)}
    )
    other = make_manifest(spec, extras={"logp": ColumnSpec(unit="bits")}, bridge_options={"id": 3})
    with pytest.raises(DatasetError) as caught:
        DatasetWriter(tmp_path, other)
    message = str(caught.value)
    for part in (
        "bridge_options: expected {}, got {'id': 3}",
        "column observation/rgb: expected uint8[6, 8, 3] as raw",
        "got uint8[7, 8, 3]",
        "column observation/compass: expected float32[3] as list, Box(-1.0, 1.0, (3,), float32)",
        "column observation/health: expected int64[] as plain, Discrete(21), got none",
        "column observation/extra: expected none",
        "column extra/logp: expected float32[] as plain in nats, got float32[] as plain in bits",
        "column extra/code",
    ):
        assert part in message
    with pytest.raises(DatasetError, match=r"column observation/rgb: expected .* as raw.* as png"):
        DatasetWriter(tmp_path, make_manifest(codec="png"))
    with pytest.raises(DatasetError, match="column details: expected none"):
        DatasetWriter(tmp_path, make_manifest(details=True))


def test_the_same_schema_resumes_under_another_policy(tmp_path):
    DatasetWriter(tmp_path, make_manifest()).close()
    player = Player()
    with DatasetWriter(tmp_path, make_manifest(policy="better", run="second")) as writer:
        writer.append(player.play(30))
    assert {r.policy for r in Dataset(tmp_path).episodes()} == {"better"}
    manifest = read_manifest(writer.layout)
    assert (manifest.policy, manifest.run) == ("random", "test")
    assert [s["run"] for s in manifest.sessions] == ["test", "second"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.observations.pop("rgb"), "observation 'rgb' is missing"),
        (lambda f: f.extras.update(value=f.reward), "extra 'value' is not a column"),
        (
            lambda f: f.observations.update(rgb=f.observations["rgb"][:, :, :5]),
            r"observation 'rgb': expected uint8\[4, 2, 6, 8, 3\], got uint8\[4, 2, 5, 8, 3\]",
        ),
        (
            lambda f: f.actions.update(action=f.actions["action"].astype(np.int32)),
            r"action 'action': expected int64\[4, 2\], got int32",
        ),
        (lambda f: f.signals.clear(), "signal 'kills' is missing"),
        (lambda f: f.terminated.__setitem__((0, 0), True), "final_index lists"),
    ],
)
def test_fragments_that_do_not_fit_are_refused_and_nothing_is_kept(tmp_path, change, message):
    player = Player(width=2, longest=50)
    player._next = next(
        e for e in range(100) if player.plan(e, 0)[0] > 20 < player.plan(e + 1, 0)[0]
    )
    with DatasetWriter(tmp_path, make_manifest(player.spec)) as writer:
        fragment = player.play(4)
        change(fragment)
        with pytest.raises(DatasetError, match=message):
            writer.append(fragment)
        writer.append(player.play(4))  # the writer still works
    assert Dataset(tmp_path).table(["step"]).column(0).to_pylist() == [4, 5, 6, 7] * 2


def test_details_must_be_json(tmp_path):
    player = Player(details=True)
    with DatasetWriter(tmp_path, make_manifest(player.spec, details=True)) as writer:
        fragment = player.play(3)
        fragment.details[1][0] = {"x": {1, 2}}
        with pytest.raises(DatasetError, match="details must be JSON-able"):
            writer.append(fragment)


def test_bad_options_are_refused(tmp_path):
    with pytest.raises(DatasetError, match="expected fsync never, episode or shard, journal lz4"):
        DatasetWriter(tmp_path, make_manifest(), fsync="often")
    with pytest.raises(DatasetError, match="compression 'gzip' does not exist"):
        make_manifest(compression="gzip")
    assert describe_dataset.__doc__
    assert EXTRAS
