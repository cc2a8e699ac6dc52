"""Which precision a learner computes in."""

import logging

import pytest
import torch

from rollout.train.ppo.learner import uses_bfloat16

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
