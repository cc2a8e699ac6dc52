"""Keys and passwords that a user writes into a configuration are written nowhere."""

import pytest

from rollout.cluster.submit import describe, parse_submission
from rollout.config import make_config
from rollout.configuration.secrets import hidden, refuse_secrets
from rollout.errors import ConfigError
from rollout.judge.config import JudgeConfig
from rollout.run_directory import RunDirectory

SECRET = "sEcReT-of-mine"

HELD = {
    "endpoint.url": {"endpoint": {"url": f"http://me:{SECRET}@h/v1"}},
    "endpoint.url ": {"endpoint": {"url": f"https://{SECRET}@h/v1"}},
    "endpoint.url  ": {"endpoint": {"url": f"https://h/v1?key={SECRET}"}},
    "endpoint.extra.api_key": {"endpoint": {"extra": {"api_key": SECRET}}},
    "endpoint.extra.a.token": {"endpoint": {"extra": {"a": {"token": SECRET}}}},
    "endpoint.extra.user": {"endpoint": {"extra": {"user": f"sk-{SECRET}-0123456789"}}},
    "endpoint.headers.Authorization": {"endpoint": {"headers": {"Authorization": SECRET}}},
    "endpoint.headers.api-key": {"endpoint": {"headers": {"api-key": SECRET}}},
    "players.a.bridge.url": {"players": {"a": {"bridge": {"url": f"ws://x:{SECRET}@h"}}}},
    "ray.address": {"ray": {"address": f"ray://me:{SECRET}@h:10001"}},
    "log[0]": {"log": [f"http://me:{SECRET}@h"]},
}


@pytest.mark.parametrize("key", HELD)
def test_a_secret_is_refused_by_its_key_and_not_shown(key):
    with pytest.raises(ConfigError) as told:
        refuse_secrets(HELD[key])
    assert str(told.value).startswith(f"{key.strip()} holds ")
    assert SECRET not in str(told.value)


def test_what_is_no_secret_is_not_refused():
    headers = {"api-key": "$KEY", "Authorization": "Bearer $KEY", "X-Title": "a key"}
    extra = {"prompt_cache_key": "a", "return_token_ids": True, "stop_token": "</s>", "top_k": 3}
    urls = ["http://h:80/a@b", "s3://bucket/a", "mail me@example.org", "a: b@c"]
    endpoint = {"url": "https://h/v1?api-version=1", "headers": headers, "extra": extra}
    refuse_secrets({"endpoint": endpoint, "urls": urls, "goal": "press the key: b@c"})


def test_a_run_with_a_secret_is_not_begun(tmp_path):
    endpoint = {"url": f"http://me:{SECRET}@h/v1"}
    data = {"output": str(tmp_path / "run"), "dataset": "d", "model": "m", "endpoint": endpoint}
    config = make_config(JudgeConfig, data)
    with pytest.raises(ConfigError, match=r"^endpoint\.url holds"):
        RunDirectory.create(tmp_path / "run", config, resume=False)
    assert not (tmp_path / "run").exists()


def test_a_job_shows_no_secret(tmp_path):
    (tmp_path / "a.py").touch()
    options = ["--working-dir", str(tmp_path), "--env", f"http_proxy=http://me:{SECRET}@h:1"]
    order = parse_submission([*options, "--env", f"MY_KEY={SECRET}", "--", "python", "a.py"])
    assert "http_proxy=http://***@h:1" in describe(order).replace("'", "")
    assert SECRET not in describe(order)
    assert sum("is shown, as it is" in note for note in order.notes) == 2
    with pytest.raises(ConfigError, match="the command holds a key") as told:
        parse_submission([*options, "--", "python", "a.py", f"endpoint.url=http://me:{SECRET}@h"])
    assert SECRET not in str(told.value)


def test_only_the_secret_of_a_text_is_hidden():
    assert hidden(f"http://me:{SECRET}@h:1/v1?a=1&key={SECRET}#x") == "http://***@h:1/v1?a=1&***#x"
