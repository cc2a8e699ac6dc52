"""The real TRL, Inspect AI and verifiers on our games; `make long` installs them."""

import base64
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from rollout.testing.chat_server import ChatServer, Scripted

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]  # those of the libraries

ROOT = Path(__file__).parents[3]
VERIFIERS = ROOT / ".venv" / "verifiers" / "bin" / "vf-eval"


def pixels(url):
    file = base64.b64decode(url.removeprefix("data:image/png;base64,"))
    return cv2.imdecode(np.frombuffer(file, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]


@pytest.mark.parametrize("number", [0, 1])
def test_the_examples_of_the_page_run(number, tmp_path):
    """Those for libraries that `make test` lacks; tests/test_snippets.py runs the others."""
    page = (ROOT / "docs" / "interop.md").read_text()
    script = re.findall(r"^```py\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[number]
    if "Qwen/" in script:
        model, tokenizer = tiny_model()
        for each in (model, tokenizer):
            each.save_pretrained(tmp_path / "model")
        script = script.replace("Qwen/Qwen3-0.6B", str(tmp_path / "model"))
    command = [sys.executable, "-c", script]
    said = subprocess.run(
        command, cwd=tmp_path, timeout=300, stdout=-1, stderr=-2, text=True, check=True
    ).stdout
    assert "success" in said or "train_loss" in said


# TRL ----------------------------------------------------------------------------------------------


def tiny_model():
    """A Qwen3 of new weights whose tokenizer has Qwen3's template of conversations."""
    import transformers as tf
    import trl
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    template = Path(trl.__file__).with_name("chat_templates") / "qwen3.jinja"
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special, alphabet = ["<|endoftext|>", "<|im_end|>"], pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator([template.read_text()], trainer)
    tokenizer = tf.PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token=special[0],
        eos_token=special[1],
        chat_template=template.read_text(),
    )
    config = tf.Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=8192,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return tf.Qwen3ForCausalLM(config), tokenizer


def test_grpo_trains_on_the_returns_of_the_record(toy, monkeypatch):
    """Two steps: TRL calls the tools, and its rewards are those of our player."""
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    from trl import GRPOConfig, GRPOTrainer

    from rollout.interop.trl import environment

    model, tokenizer = tiny_model()
    games = environment("toy", games=4)
    rows = games.rows(4)
    rewards = {}

    class Trainer(GRPOTrainer):
        """Says the actions of the record, since new weights say nothing that has a meaning."""

        def _generate_single_turn(self, prompt_ids, *arguments, **options):
            _, logprobs = super()._generate_single_turn(prompt_ids, *arguments, **options)
            said = []
            for ids in prompt_ids:
                step = tokenizer.decode(ids).count("<tool_response>")
                call = json.dumps({"name": "act", "arguments": {"action": toy.name(step)}})
                text = f"<tool_call>\n{call}\n</tool_call>" if step < 6 else "done"
                said.append(tokenizer(f"{text}<|im_end|>")["input_ids"])
            return said, logprobs

        def _calculate_rewards(self, inputs, *rest):
            found = super()._calculate_rewards(inputs, *rest)
            for row, reward in zip(inputs, found[:, 0].tolist(), strict=True):
                rewards.setdefault((int(row["state"]), row["seed"]), []).append(reward)
            return found

    options = GRPOConfig(
        output_dir=str(toy.folder / "grpo"),
        max_steps=2,
        per_device_train_batch_size=4,
        num_generations=2,
        max_completion_length=4000,
        generation_kwargs={"max_new_tokens": 2},
        save_strategy="no",
        logging_steps=1,
        report_to=[],
        use_cpu=True,
    )
    trainer = Trainer(
        model=model,
        args=options,
        processing_class=tokenizer,
        environment_factory=games,
        train_dataset=rows,
    )
    trainer.train()
    games.close()
    expected, _ = toy.record(rewards)
    assert len(rewards) == 4
    for key, group in rewards.items():
        assert group == [np.float32(expected[key])] * 2
    logged = [row for row in trainer.state.log_history if "reward" in row]
    assert [row["tools/failure_frequency"] for row in logged] == [0, 0]
    assert [row["tools/call_frequency"] for row in logged] == [6, 6]


# Inspect ------------------------------------------------------------------------------------------


def evaluated(folder, bridge, answer, **options):
    import inspect_ai
    from inspect_ai.log import read_eval_log
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    from rollout.interop.inspect_ai import play

    def said(messages, *_):
        output = ModelOutput.from_content("mockllm/model", answer(messages))
        output.usage = ModelUsage()  # none is counted, which would need the network
        return output

    model = get_model("mockllm/model", custom_outputs=said)
    made = play(bridge, tools=False, state_set={"size": 2, "split": "train"}, **options)
    [log] = inspect_ai.eval(made, model=model, log_dir=str(folder / "logs"), display="none")
    return read_eval_log(log.location, resolve_attachments=True)


def test_inspect_shows_the_pictures_of_the_record(toy):
    log = evaluated(
        toy.folder, "toy", lambda seen: toy.name(sum(m.role == "assistant" for m in seen))
    )
    keys = [(int(s.metadata["state"]), s.metadata["seed"]) for s in log.samples]
    returns, pictures = toy.record(keys)
    for key, sample in zip(keys, log.samples, strict=True):
        assert sample.scores["evaluator"].value["return"] == returns[key]
        assert sample.scores["evaluator"].answer == "terminated"
        parts = [part for m in sample.messages if m.role == "user" for part in m.content]
        seen = [pixels(part.image) for part in parts if part.type == "image"]
        assert len(seen) == len(pictures[key])
        assert all(np.array_equal(a, b) for a, b in zip(seen, pictures[key], strict=True))


def test_inspect_ends_what_has_no_action_and_scores_no_lost_game(toy):
    log = evaluated(toy.folder, "toy", lambda _: "I would rather not.")
    assert [s.scores["evaluator"].answer for s in log.samples] == ["no usable action"] * 2
    options = {"exit_on_step": 2, "process": "subprocess"}
    log = evaluated(toy.folder, "fake", lambda _: "0", options=options)
    assert all("GameLost" in s.error.traceback for s in log.samples)
    assert not any(s.scores for s in log.samples)
    assert log.status == "success"  # the evaluation went on


# verifiers ----------------------------------------------------------------------------------------


def streamed(text):
    """The answer of a model in parts, as verifiers asks for it."""
    base = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    parts = [{"delta": {"role": "assistant", "content": text}, "finish_reason": None}]
    parts.append({"delta": {}, "finish_reason": "stop"})
    chunks = [{**base, "choices": [{"index": 0, **part}]} for part in parts]
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
    chunks.append({**base, "choices": [], "usage": usage})
    lines = [*map(json.dumps, chunks), "[DONE]"]
    body = "".join(f"data: {line}\n\n" for line in lines).encode()
    return Scripted(body=body, headers={"Content-Type": "text/event-stream"})


@pytest.mark.skipif(not VERIFIERS.exists(), reason="make long installs verifiers")
def test_verifiers_shows_and_scores_the_record(toy):
    def answer(request):
        step = sum(message["role"] == "assistant" for message in request["messages"])
        return streamed(toy.name(step))

    paths = [str(Path(sys.executable).parent), os.environ["PATH"]]  # the first has uv
    environment = {**os.environ, "PATH": os.pathsep.join(paths), "KEY": "none"}
    with ChatServer(answer) as server:
        command = [str(VERIFIERS), "gamut_games", "-n", "2", "-m", "m", "--no-push", "--no-rich"]
        command += ["--env.taskset.bridge", "toy", "--client.api-key-var", "KEY"]
        command += ["--client.base-url", server.url, "-o", str(toy.folder / "out")]
        subprocess.run(command, env=environment, cwd=toy.folder, check=True, timeout=300)
    [file] = (toy.folder / "out").glob("*/traces.jsonl")
    episodes = [json.loads(line) for line in file.read_text().splitlines()]
    data = [episode["task"]["data"] for episode in episodes]
    keys = [(int(each["state"]), each["seed"]) for each in data]
    returns, pictures = toy.record(keys)
    for key, episode in zip(keys, episodes, strict=True):
        [trace] = episode["traces"]
        assert episode["ok"]
        assert trace["rewards"]["return"]["score"] == returns[key]
        assert trace["info"]["end"] == "terminated"
    last = max(server.requests, key=lambda each: len(each["messages"]))
    shown = [part for m in last["messages"] if m["role"] == "user" for part in m["content"]]
    seen = [pixels(p["image_url"]["url"]) for p in shown if p["type"] == "image_url"]
    assert any(
        all(np.array_equal(a, b) for a, b in zip(seen, each[:6], strict=True))
        for each in pictures.values()
    )
