"""A model of transformers with its tokenizer: texts and pictures in, token ids out. No Ray here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rollout.api import Array
from rollout.errors import ConfigError, ContractError
from rollout.models.sections import Local

Prompt = tuple[Sequence[Mapping[str, Any]], Sequence[Array]]
"""Messages, and their pictures in order."""


@dataclass(frozen=True)
class Generated:
    """An answer.

    Attributes:
        prompt_ids: tokens of the prompt, those of pictures included.
        output_ids: tokens of the answer, with the one that ends it.
        logprobs: their log-probabilities in the distribution that was sampled.
        text: the answer.
        finish: ``stop``, or ``length`` if it was cut off.
    """

    prompt_ids: list[int]
    output_ids: list[int]
    logprobs: list[float]
    text: str
    finish: str


class Transformer:
    """A model, its tokenizer and the processor of its pictures.

    Args:
        folder: a folder of transformers or of PEFT, or a name on the Hub.
        device: where it runs; ``auto`` for a GPU if there is one.
        dtype: type of its weights; ``auto`` for that of the folder.

    Attributes:
        model: the ``torch.nn.Module``.
        device: where it is.
        takes_images: whether it takes pictures.

    Raises:
        ConfigError: it cannot be loaded.
    """

    def __init__(self, folder: str, *, device: str = "auto", dtype: str = "auto") -> None:
        import transformers  # noqa: PLC0415 - seconds

        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        self.device = torch.device(device)
        base, adapter = _base_and_adapter(folder)
        try:
            config = transformers.AutoConfig.from_pretrained(base)
            seeing = type(config) in transformers.AutoModelForImageTextToText._model_mapping
            kind: Any = transformers.AutoModelForCausalLM
            kind = transformers.AutoModelForImageTextToText if seeing else kind
            model = kind.from_pretrained(base, dtype=dtype)
            processor = transformers.AutoProcessor if seeing else transformers.AutoTokenizer
            self.processor = processor.from_pretrained(base)
        except (OSError, ValueError, KeyError, ImportError) as error:
            raise ConfigError(f"local.model={folder} cannot be loaded: {error}") from error
        # Penalties, bans and minimum lengths of the folder would change what is sampled, not what
        # ``logprobs`` returns. They are kept to be saved, and never used.
        generation_config = self._generation_config = model.generation_config
        model.generation_config = transformers.GenerationConfig()
        if adapter:
            import peft  # noqa: PLC0415 - seconds

            model = peft.PeftModel.from_pretrained(model, adapter, is_trainable=True)
        self.takes_images = seeing
        self.tokenizer = self.processor.tokenizer if seeing else self.processor
        self.model = model.to(self.device).eval()
        self._end_tokens = _end_tokens(generation_config, self.tokenizer)
        self._suppressed = self._never_sampled(config)
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token

    @classmethod
    def of(cls, options: Local, folder: str, device: str = "") -> Transformer:
        """Returns the model of some options, with a new adapter if they have one.

        Raises:
            ConfigError: it cannot be loaded.
        """
        found = cls(folder, device=device or options.device, dtype=options.dtype)
        if options.lora is not None and not found.has_adapter:
            found.add_adapter(options.lora.rank, options.lora.alpha)
        return found

    def _never_sampled(self, config: Any) -> list[int]:
        """Returns picture tokens: in an answer they would break the next forward pass."""
        names = ("image_token_id", "image_token_index", "video_token_id", "vision_start_token_id")
        found = {getattr(config, name, None) for name in (*names, "vision_end_token_id")}
        found |= {self.tokenizer.pad_token_id} - set(self._end_tokens)
        return sorted(int(each) for each in found if each is not None)

    def encode(self, prompts: Sequence[Prompt]) -> dict[str, Tensor]:
        """Returns the inputs of the model for prompts, padded on the left, on the CPU."""
        texts = [
            self.processor.apply_chat_template(
                _chat_messages(messages, takes_images=self.takes_images),
                add_generation_prompt=True,
                tokenize=False,
            )
            for messages, _ in prompts
        ]
        pictures: dict[str, Any] = {}
        if self.takes_images and any(images for _, images in prompts):
            pictures = {"images": [list(images) for _, images in prompts]}
        inputs = self.processor(
            text=texts,
            **pictures,
            padding=True,
            padding_side="left",
            add_special_tokens=False,
            return_tensors="pt",
        )
        return dict(inputs)

    @torch.no_grad()
    def generate(
        self,
        prompts: Sequence[Prompt],
        *,
        seeds: Sequence[int],
        temperature: float,
        max_tokens: int,
    ) -> list[Generated]:
        """Returns an answer to each prompt, from the distribution of ``logprobs``.

        The folder's ``generation_config.json`` only says which tokens end an answer.

        Args:
            prompts: messages and pictures.
            seeds: random seed of each answer.
            temperature: of the softmax; 0 for the most probable token at each place.
            max_tokens: of an answer.
        """
        inputs = {key: value.to(self.device) for key, value in self.encode(prompts).items()}
        start = inputs["input_ids"].shape[1]
        draw = _Sampler(seeds, temperature, self._suppressed)
        self.model.eval()
        tokens = self.model.generate(
            **inputs,
            max_new_tokens=max_tokens,
            do_sample=False,
            num_beams=1,
            logits_processor=[draw],
            eos_token_id=self._end_tokens,
            pad_token_id=self.tokenizer.pad_token_id,
        )
        logprobs = torch.stack(draw.logprobs, 1).cpu().numpy()
        asked = inputs["attention_mask"].bool()
        found = []
        for row in range(len(prompts)):
            ids: list[int] = tokens[row, start:].tolist()
            end = next((at for at, each in enumerate(ids) if each in self._end_tokens), None)
            ids = ids if end is None else ids[: end + 1]
            found.append(
                Generated(
                    inputs["input_ids"][row][asked[row]].tolist(),
                    ids,
                    [float(x) for x in logprobs[row, : len(ids)]],
                    self.tokenizer.decode(ids, skip_special_tokens=True),
                    "length" if end is None else "stop",
                )
            )
        return found

    def answer_ids(self, text: str) -> list[int]:
        """Returns the tokens of an answer, with the one that ends it."""
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return [*ids, self._end_tokens[0]]

    def logprobs(
        self,
        prompts: Sequence[Prompt],
        outputs: Sequence[Sequence[int]],
        temperature: float = 1.0,
        *,
        prompt_ids: Sequence[Sequence[int]] | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the log-probabilities of given answers, as ``generate`` would sample them.

        Args:
            prompts: messages and pictures.
            outputs: tokens of the answers.
            temperature: of the softmax.
            prompt_ids: tokens of the prompts when they were answered; None if that is not known.

        Raises:
            ContractError: the prompts have other tokens now.

        Returns:
            log-probabilities, entropies and the mask of the tokens of the answers, each
            ``(B, T)`` on the device; 0 outside the mask.
        """
        inputs, length = self.encode(prompts), max(map(len, outputs))
        if prompt_ids is not None:
            asked = inputs["attention_mask"].bool()
            for row, known in enumerate(prompt_ids):
                if inputs["input_ids"][row][asked[row]].tolist() != list(known):
                    raise ContractError(
                        "a recorded prompt has other tokens now than when it was answered: its "
                        "tokenizer, its template or its pictures were changed since"
                    )
        ids = np.full((len(outputs), length), self.tokenizer.pad_token_id, np.int64)
        mask = np.zeros((len(outputs), length), bool)
        for row, output in enumerate(outputs):
            ids[row, : len(output)], mask[row, : len(output)] = output, True
        answer, wanted = torch.from_numpy(ids), torch.from_numpy(mask)
        inputs["input_ids"] = torch.cat([inputs["input_ids"], answer], 1)
        inputs["attention_mask"] = torch.cat([inputs["attention_mask"], wanted.long()], 1)
        if "mm_token_type_ids" in inputs:
            kinds = inputs["mm_token_type_ids"]
            inputs["mm_token_type_ids"] = torch.cat([kinds, torch.zeros_like(answer)], 1)
        inputs = {key: value.to(self.device) for key, value in inputs.items()}
        if "mm_token_type_ids" not in inputs:  # else the model finds positions in a grid itself
            inputs["position_ids"] = (inputs["attention_mask"].cumsum(1) - 1).clamp(min=0)
        logits = self.model(**inputs, use_cache=False, logits_to_keep=length + 1).logits
        logits = logits[:, -length - 1 : -1].float()
        logits[..., self._suppressed] = -torch.inf
        logits = logits / (temperature or 1.0)
        all_ = torch.log_softmax(logits, -1)
        answer, wanted = answer.to(self.device), wanted.to(self.device)
        chosen = all_.gather(-1, answer[..., None])[..., 0].masked_fill(~wanted, 0.0)
        finite = all_.masked_fill(~all_.isfinite(), 0.0)
        entropy = -(finite.exp().masked_fill(~all_.isfinite(), 0.0) * finite).sum(-1)
        return chosen, entropy.masked_fill(~wanted, 0.0), wanted

    def trainable_parameters(self) -> dict[str, torch.nn.Parameter]:
        """Returns the parameters that a training changes, by name."""
        return {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    def load(self, weights: Mapping[str, Any]) -> None:
        """Replaces the parameters that a training changes.

        Raises:
            ConfigError: they belong to another model.
        """
        own = self.trainable_parameters()
        if own.keys() != weights.keys():
            different = sorted(own.keys() ^ weights.keys())
            raise ConfigError(
                f"the weights belong to another model: {len(different)} names differ, e.g. "
                f"{different[0]}"
            )
        with torch.no_grad():
            for name, value in weights.items():
                tensor = torch.as_tensor(value)
                if own[name].shape != tensor.shape:
                    raise ConfigError(
                        f"the weights belong to another model: {name} is {list(own[name].shape)} "
                        f"here and {list(tensor.shape)} there"
                    )
                own[name].copy_(tensor)

    @property
    def has_adapter(self) -> bool:
        """True if an adapter is trained instead of the whole model."""
        return hasattr(self.model, "peft_config")

    def add_adapter(self, rank: int, alpha: int) -> None:
        """Adds a new LoRA adapter to all linear layers of the language model, and trains it."""
        import peft  # noqa: PLC0415 - seconds

        options = peft.LoraConfig(r=rank, lora_alpha=alpha, target_modules="all-linear")
        self.model = peft.get_peft_model(self.model, options)

    def save(self, folder: Path) -> None:
        """Writes the model in the form of transformers, or its adapter in that of PEFT."""
        self.model.save_pretrained(folder)
        if not self.has_adapter:
            self._generation_config.save_pretrained(folder)
        self.processor.save_pretrained(folder)


def _base_and_adapter(folder: str) -> tuple[str, str]:
    """Returns the folder of a model and that of its adapter, empty for none."""
    path = Path(folder)
    if not (path / "adapter_config.json").is_file():
        return folder, ""
    import peft  # noqa: PLC0415 - seconds

    return str(peft.PeftConfig.from_pretrained(folder).base_model_name_or_path), folder


def _end_tokens(generation: Any, tokenizer: Any) -> list[int]:
    """Returns the tokens that end an answer."""
    eos = generation.eos_token_id
    found = eos if isinstance(eos, list) else [eos]
    own = tokenizer.eos_token_id
    return [own, *(each for each in found if each not in (None, own))]


def _chat_messages(
    messages: Sequence[Mapping[str, Any]], *, takes_images: bool
) -> list[dict[str, Any]]:
    """Returns messages in the form of chat templates, without digests."""

    def part(each: Mapping[str, Any]) -> dict[str, Any]:
        return {"type": "image"} if each["type"] == "image" else dict(each)

    def parts(content: Any) -> Any:
        if isinstance(content, list):
            return [part(each) for each in content]
        # Templates of models with pictures may know lists alone, others texts alone.
        return [{"type": "text", "text": content}] if takes_images else content

    return [{**message, "content": parts(message["content"])} for message in messages]


class _Sampler:
    """Samples a token per row by inversion, each row with its own generator."""

    def __init__(self, seeds: Sequence[int], temperature: float, suppressed: list[int]) -> None:
        self._chance = [np.random.default_rng(seed) for seed in seeds]
        self._temperature, self._suppressed = temperature, suppressed
        self.logprobs: list[Tensor] = []

    def __call__(self, ids: Tensor, scores: Tensor) -> Tensor:
        """Returns scores in which the drawn token alone is possible."""
        del ids
        scores = scores.float()
        scores[:, self._suppressed] = -torch.inf
        known = torch.log_softmax(scores / (self._temperature or 1.0), -1)
        if self._temperature:
            below = known.double().exp().cumsum(-1)
            numbers = torch.tensor([[rng.random()] for rng in self._chance]).to(below)
            chosen = torch.searchsorted(below, numbers * below[:, -1:], right=True)
            chosen = chosen.clamp(max=known.shape[1] - 1)
        else:
            chosen = known.argmax(-1, keepdim=True)
        self.logprobs.append(known.gather(-1, chosen)[:, 0])
        return torch.full_like(known, -torch.inf).scatter_(-1, chosen, 0.0)
