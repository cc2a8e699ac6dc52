"""Local models: answers as training records, and learning from them. No Ray, no download."""

import dataclasses
import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest
import torch

pytest.importorskip("transformers", reason="the extra vlm is not installed")

from rollout.errors import ConfigError, ContractError
from rollout.models.client import Request
from rollout.models.examples import TrainingExample
from rollout.models.local import LocalModel
from rollout.models.sections import Local, Lora
from rollout.models.tiny import Sizes, build
from rollout.models.transformer import Transformer
from rollout.train.language.learner import LanguageLearner, PassOptions

pytestmark = [pytest.mark.heavy]
SIZES = Sizes(image=32, patch=16, hidden=32, layers=1, heads=2, vocabulary=320)
SAMPLED = {"temperature": 1.0, "max_tokens": 12}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("models") / "tiny"
    build(place, SIZES, ["Your goal: go to the red ball", "<action>go</action>"] * 3, seed=0)
    return place


@pytest.fixture(scope="module")
def model(folder):
    return LocalModel(Local(model=str(folder)), images=True)


def request_of(number, *, pictures=1, text="Your goal: go", fields=SAMPLED):
    images, parts = {}, []
    for each in range(pictures):
        frame = np.random.default_rng([number, each]).integers(0, 256, (32, 32, 3), np.uint8)
        images[f"{number}-{each}"] = bytes(cv2.imencode(".png", frame)[1])
        parts.append({"type": "image", "digest": f"{number}-{each}"})
    parts.append({"type": "text", "text": "What now?" + "!" * number})
    messages = [{"role": "system", "content": text}, {"role": "user", "content": parts}]
    return Request(fields, messages, images, "image/png", [number, 0, 0])


def lesson_of(request, record, **more):
    return TrainingExample(
        request.messages,
        request.images,
        prompt_ids=record.prompt_ids,
        output_ids=record.output_ids,
        logprobs=record.output_logprobs,
        **more,
    )


def likelihood(learner, lesson):
    with torch.no_grad():
        return float(learner._logprobs([lesson])[0].sum())


def test_an_answer_is_the_same_whatever_shares_its_batch(model):
    requests = [request_of(number, pictures=1 + number % 2) for number in range(5)]
    together = model.answer(requests)
    alone = [model.answer([each])[0] for each in reversed(requests)][::-1]
    assert [r.output_ids for r in together] == [r.output_ids for r in alone]
    assert len({tuple(r.output_ids) for r in together}) == 5, "chance of their own"
    again = model.answer([dataclasses.replace(requests[0], identity=[0, 1, 0])])
    assert again[0].output_ids != together[0].output_ids, "another step, other chance"


def test_recorded_log_probabilities_are_those_of_a_forward_pass(model):
    requests = [request_of(number, pictures=1 + number % 2) for number in range(4)]
    records = model.answer(requests)
    learner = LanguageLearner(model.transformer)
    logp, entropy, mask = learner._logprobs(
        [lesson_of(q, r) for q, r in zip(requests, records, strict=True)]
    )
    for row, record in enumerate(records):
        own = logp[row][mask[row]].detach().numpy()
        assert own == pytest.approx(record.output_logprobs, abs=1e-4)
        assert record.input_tokens == len(record.prompt_ids)
    assert (entropy[mask] > 0).all()
    assert not logp[~mask].any()


def test_the_most_probable_answer_and_a_temperature(model):
    cold = dict(SAMPLED, temperature=0.0)
    first, second = (model.answer([request_of(1, fields=cold)])[0] for _ in range(2))
    assert first.output_ids == second.output_ids
    warm = model.answer([request_of(1, fields=dict(SAMPLED, temperature=0.5))])[0]
    lesson = lesson_of(request_of(1), warm, temperature=0.5)
    learner = LanguageLearner(model.transformer)
    assert likelihood(learner, lesson) == pytest.approx(sum(warm.output_logprobs), abs=1e-4)


def test_tokens_of_pictures_are_never_sampled(model):
    # Among some 320 tokens that are about equally probable, one would come up.
    fields = dict(SAMPLED, max_tokens=64)
    records = model.answer([request_of(n, fields=fields) for n in range(32)])
    picture = model.transformer.tokenizer.convert_tokens_to_ids("<image>")
    sampled = [each for record in records for each in record.output_ids]
    assert len(sampled) > 1000
    assert picture not in sampled


def test_tokens_are_learned_as_they_were_sampled(model):
    records = model.answer([request_of(number) for number in range(8)])
    tokenizer = model.transformer.tokenizer
    other = [
        record
        for record in records
        if tokenizer(record.answer, add_special_tokens=False)["input_ids"] != record.output_ids
    ]
    assert other, "random bytes do not survive decoding and encoding"
    learner = LanguageLearner(model.transformer)
    assert learner._output(lesson_of(request_of(0), other[0])) == other[0].output_ids


def test_a_prompt_that_has_other_tokens_now_is_refused(model):
    record = model.answer([request_of(0)])[0]
    lesson = lesson_of(request_of(0, text="Your goal: stay"), record)
    with pytest.raises(ContractError, match="other tokens now"):
        LanguageLearner(model.transformer)._logprobs([lesson])


def fresh(folder, **options):
    return LanguageLearner(Transformer(str(folder)), **options)


def test_imitation_makes_an_answer_probable(folder):
    learner = fresh(folder)
    request = request_of(0)
    lesson = TrainingExample(request.messages, request.images, answer="<action>go</action>")
    before = learner.loss([lesson])["loss"]
    step = PassOptions((1e-2, 3e-3), minibatch=1)
    for _ in range(40):
        learner.learn([lesson], step)
    assert learner.loss([lesson])["loss"] < 0.1 * before
    cold = dict(SAMPLED, temperature=0.0)
    answered = LocalModel(Local(model=str(folder)))
    answered.load(learner.weights(), 7)
    record = answered.answer([dataclasses.replace(request, fields=cold)])[0]
    assert (record.answer, record.version) == ("<action>go</action>", 7)


@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_advantages_move_the_probability_of_what_was_sampled(folder, advantage):
    learner = fresh(folder)
    played = LocalModel(Local(model=str(folder)))
    request = request_of(3)
    lesson = lesson_of(request, played.answer([request])[0], advantage=advantage)
    before = likelihood(learner, lesson)
    figures = learner.learn([lesson], PassOptions((1e-3, 1e-3), 1, clip=(0.2, 0.28)))
    change = likelihood(learner, lesson) - before
    assert change * advantage > 0
    assert figures["kl"] == pytest.approx(0.0, abs=1e-6), "the first step is on-policy"
    assert figures["ratio"] == pytest.approx(1.0, abs=1e-3)


PENALTIES = {"repetition_penalty": 1.5, "no_repeat_ngram_size": 2, "min_new_tokens": 5}
CHOICES = {"top_p": 0.8, "top_k": 20, "temperature": 0.6, "do_sample": True}


@pytest.mark.parametrize("told", [PENALTIES, CHOICES, PENALTIES | CHOICES])
def test_ratios_are_1_whatever_a_folder_says_of_generation_and_dropout(folder, tmp_path, told):
    place = shutil.copytree(folder, tmp_path / "model")
    for name, key in (("generation_config.json", None), ("config.json", "text_config")):
        whole = json.loads((place / name).read_text())
        (whole[key] if key else whole).update({"attention_dropout": 0.5} if key else told)
        (place / name).write_text(json.dumps(whole))
    requests = [request_of(n, fields=dict(SAMPLED, temperature=0.8)) for n in range(4)]
    records = LocalModel(Local(model=str(place)), images=True).answer(requests)
    lessons = [
        lesson_of(q, r, temperature=0.8, advantage=1.0)
        for q, r in zip(requests, records, strict=True)
    ]
    learner = fresh(place)
    figures = learner.learn(lessons, PassOptions((0.0, 0.0), minibatch=4, clip=(0.2, 0.28)))
    assert figures["ratio"] == pytest.approx(1.0, abs=1e-5)
    assert figures["kl"] == pytest.approx(0.0, abs=1e-9), "none is below 1 either"
    learner.transformer.save(tmp_path / "saved")
    saved = json.loads((tmp_path / "saved" / "generation_config.json").read_text())
    assert saved.items() >= told.items(), "kept for other programs"


def test_nothing_is_learned_beyond_the_clipping(folder):
    learner = fresh(folder)
    request = request_of(3)
    record = LocalModel(Local(model=str(folder))).answer([request])[0]
    less = [logp - 1.0 for logp in record.output_logprobs]  # as if the ratio were e
    lesson = lesson_of(request, dataclasses.replace(record, output_logprobs=less), advantage=1.0)
    before = learner.weights()
    figures = learner.learn([lesson], PassOptions((1e-3, 1e-3), 1, clip=(0.2, 0.28)))
    assert figures["clipped"] == 1.0
    after = learner.weights()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_an_adapter_alone_is_trained_saved_and_opened(folder, tmp_path):
    whole = sum(each.numel() for each in fresh(folder).weights().values())
    options = Local(model=str(folder), lora=Lora(rank=4, alpha=8))
    learner = LanguageLearner(Transformer.of(options, str(folder)))
    assert sum(each.numel() for each in learner.weights().values()) < whole / 3
    request = request_of(0)
    lesson = TrainingExample(request.messages, request.images, answer="<action>go</action>")
    for _ in range(10):
        learner.learn([lesson], PassOptions((1e-2, 1e-2), 1))
    learner.transformer.save(tmp_path / "adapter")
    assert not (tmp_path / "adapter" / "config.json").exists(), "the base is not written again"
    cold = dataclasses.replace(request, fields=dict(SAMPLED, temperature=0.0))
    played, told = LocalModel(options), LocalModel(Local(model=str(tmp_path / "adapter")))
    assert played.answer([cold])[0].output_ids != told.answer([cold])[0].output_ids
    played.load(learner.weights(), 1)
    assert played.answer([cold])[0].output_ids == told.answer([cold])[0].output_ids
    opened = fresh(tmp_path / "adapter")
    assert opened.transformer.has_adapter
    assert likelihood_of(opened, lesson) == pytest.approx(likelihood_of(learner, lesson), abs=1e-4)
    with pytest.raises(ConfigError, match="another model"):
        fresh(folder).restore(learner.weights(), None)


def likelihood_of(learner, lesson):
    return learner.loss([lesson])["loss"]


def test_what_is_no_model_is_told(tmp_path):
    with pytest.raises(ConfigError, match=r"expected a folder with config\.json"):
        LocalModel(Local(model=str(tmp_path)))


def test_what_threads_ask_meanwhile_is_answered_together(model, monkeypatch):
    requests = [request_of(number) for number in range(6)]
    alone = [model.answer([each])[0].answer for each in requests]
    begun, sizes, answer = threading.Event(), [], model.answer

    def slow(batch):
        sizes.append(len(batch))
        if len(sizes) == 1:
            begun.wait(20)
            raise ValueError("the first batch fails")
        return answer(batch)

    monkeypatch.setattr(model, "answer", slow)
    with ThreadPoolExecutor(6) as threads:
        first = threads.submit(model.ask, requests[0])
        while not sizes:
            threading.Event().wait(0.01)
        others = [threads.submit(model.ask, each) for each in requests[1:]]
        while len(model._waiting) < 5:
            threading.Event().wait(0.01)
        begun.set()
        assert [each.result(60).answer for each in others] == alone[1:]
        with pytest.raises(ValueError, match="the first batch fails"):
            first.result(60)
    assert sizes == [1, 5]
