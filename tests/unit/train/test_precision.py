"""Which precision a learner computes in."""

import logging

import pytest
import torch

from rollout.testing import FakeBridge
from rollout.train.ppo import Ppo
from rollout.train.ppo.learner import PpoLearner, uses_bfloat16
from tests.unit.train.learning_tools import network_of, small

CPU = torch.device("cpu")


@pytest.mark.parametrize("hardware", [True, False])
def test_auto_goes_by_the_hardware_and_a_request_for_what_it_lacks_warns(
    monkeypatch, caplog, hardware
):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True, "amx_bf16": hardware})
    with caplog.at_level(logging.WARNING):
        assert uses_bfloat16("auto", CPU) is hardware
        assert uses_bfloat16("float32", CPU) is False
    assert not caplog.records
    with caplog.at_level(logging.WARNING):
        assert uses_bfloat16("bfloat16", CPU) is True
    assert [r.levelname for r in caplog.records] == ([] if hardware else ["WARNING"])
    assert hardware or "no hardware for it" in caplog.text


def test_auto_is_bfloat16_for_pictures_alone_and_a_resumed_run_keeps_it(monkeypatch, caplog):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
    numbers, pictures = (
        PpoLearner(network_of(FakeBridge(side=4), small(columns=columns, cnn="impala")), Ppo())
        for columns in (("position",), ("image",))
    )
    assert numbers.state()["chosen"]["bfloat16"] is False
    kept = pictures.state()
    assert kept["chosen"]["bfloat16"] is True
    caplog.clear()
    pictures.restore(kept)
    assert not caplog.records
    pictures.restore(kept | {"chosen": {"bfloat16": False}})  # from a machine without it
    assert pictures.state()["chosen"]["bfloat16"] is False
    assert "it goes on in float32" in caplog.text
