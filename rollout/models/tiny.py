"""A small vision-language model with new weights, built without any download.

A LLaVA: the vision tower of CLIP, a projection, and a Llama. Its tokenizer, byte-level BPE, is
trained on the given texts. transformers opens the folder like that of any other model.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

_PAD, _END, _IMAGE = "<pad>", "<end>", "<image>"
_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}"
    "{% if message['role'] == 'assistant' %}<end>{% endif %}\n{% endfor %}"
)


@dataclass(frozen=True)
class Sizes:
    """Sizes of a small vision-language model.

    Attributes:
        image: side of the pictures, in pixels.
        patch: side of the patches, each of which is a token.
        hidden: width of its layers.
        layers: layers of the language model.
        vision_layers: layers of the vision tower that are used.
        heads: heads of attention.
        vocabulary: most tokens; 256 are bytes.
    """

    image: int = 112
    patch: int = 16
    hidden: int = 192
    layers: int = 4
    vision_layers: int = 1
    heads: int = 4
    vocabulary: int = 512


def build(folder: Path, sizes: Sizes, texts: Iterable[str], *, seed: int) -> None:
    """Writes a new model into a folder.

    Args:
        folder: where; it must not exist.
        sizes: sizes of the model.
        texts: training texts of its tokenizer; frequent words become single tokens.
        seed: of its weights.
    """
    import transformers as tf  # noqa: PLC0415 - seconds

    tokenizer = _tokenizer(texts, sizes.vocabulary)
    config = _config(tokenizer, sizes)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = tf.LlavaForConditionalGeneration(config)
        # Transformers would begin with .02, a fortieth of what patches have: places would be seen
        # only after many thousand examples.
        positions = model.model.vision_tower.embeddings.position_embedding
        torch.nn.init.normal_(positions.weight, std=0.5)
    model.generation_config = tf.GenerationConfig(
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    side = {"height": sizes.image, "width": sizes.image}
    pictures = tf.CLIPImageProcessorPil(
        size=side, crop_size=side, do_center_crop=False, resample=0, do_resize=True
    )
    processor = tf.LlavaProcessor(
        image_processor=pictures,
        tokenizer=tokenizer,
        patch_size=sizes.patch,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=_TEMPLATE,
        image_token=_IMAGE,
    )
    model.save_pretrained(folder)
    processor.save_pretrained(folder)


def _tokenizer(texts: Iterable[str], vocabulary: int) -> Any:
    import transformers as tf  # noqa: PLC0415 - seconds
    from tokenizers import (  # noqa: PLC0415 - likewise
        Regex,
        Tokenizer,
        decoders,
        models,
        pre_tokenizers,
        trainers,
    )

    trainable_parameters = Tokenizer(models.BPE())
    # Words are divided at spaces alone, so that an answer is a few tokens, tags and all.
    words = pre_tokenizers.Split(Regex(r"\s*\S+|\s+"), "isolated")
    parts = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trainable_parameters.pre_tokenizer = pre_tokenizers.Sequence([words, parts])
    trainable_parameters.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[_PAD, _END, _IMAGE],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    trainable_parameters.train_from_iterator(texts, trainer)
    tokenizer = tf.PreTrainedTokenizerFast(
        tokenizer_object=trainable_parameters, pad_token=_PAD, eos_token=_END
    )
    tokenizer.add_special_tokens({"additional_special_tokens": [_IMAGE]})
    return tokenizer


def _config(tokenizer: Any, sizes: Sizes) -> Any:
    import transformers as tf  # noqa: PLC0415 - seconds

    tower = tf.CLIPVisionConfig(
        hidden_size=sizes.hidden,
        intermediate_size=2 * sizes.hidden,
        num_hidden_layers=sizes.vision_layers + 1,
        num_attention_heads=sizes.heads,
        image_size=sizes.image,
        patch_size=sizes.patch,
    )
    words = tf.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=sizes.hidden,
        intermediate_size=3 * sizes.hidden,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.heads,
        num_key_value_heads=sizes.heads,
        max_position_embeddings=4096,
        # For widths like GPT's, .02 keeps the size of what layers pass on; here it would be so
        # small that attention began without a difference between its tokens.
        initializer_range=sizes.hidden**-0.5,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    return tf.LlavaConfig(
        vision_config=tower,
        text_config=words,
        image_token_id=tokenizer.convert_tokens_to_ids(_IMAGE),
        vision_feature_select_strategy="default",
        # As in LLaVA, features are taken before the last layer of the tower.
        vision_feature_layer=-2,
        tie_word_embeddings=True,
    )
