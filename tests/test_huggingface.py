"""At T = 1 merges and ids are those of Hugging Face `tokenizers`: a judge from outside, for the oracle too."""

import json
import random
from collections.abc import Iterable
from typing import Any

import oracle
import pytest
import tokenizers
from pickytok import Merge, Remove, Tokenizer
from tokenizers import models, pre_tokenizers, trainers

# `str.split()` and a leading ▁; Rust's white space lacks U+001C to U+001F, and an own ▁ would not get another one.
WHITESPACE = pre_tokenizers.Sequence(
    [
        pre_tokenizers.WhitespaceSplit(),
        pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=False),
    ]
)
NOT_COMPARABLE = "▁\x1c\x1d\x1e\x1f"


def train_bytes(texts: Iterable[str], vocab_size: int) -> tokenizers.Tokenizer:
    peer = tokenizers.Tokenizer(models.BPE())
    peer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    peer.train_from_iterator(
        texts,
        trainers.BpeTrainer(vocab_size=vocab_size, min_frequency=0, show_progress=False, initial_alphabet=alphabet),
    )
    return peer


def train_chars(texts: Iterable[str], vocab_size: int) -> tokenizers.Tokenizer:
    peer = tokenizers.Tokenizer(models.BPE(unk_token="<unk>"))
    peer.pre_tokenizer = WHITESPACE
    peer.train_from_iterator(
        texts,
        trainers.BpeTrainer(vocab_size=vocab_size, min_frequency=0, show_progress=False, special_tokens=["<unk>"]),
    )
    return peer


def merges_of(peer: tokenizers.Tokenizer) -> list[tuple[str, str]]:
    model: dict[str, Any] = json.loads(peer.to_str())["model"]
    return [(left, right) for left, right in model["merges"]]


def pairs_of(events: Iterable[Merge | Remove]) -> list[tuple[str, str]]:
    return [(event.left, event.right) for event in events if isinstance(event, Merge)]


def test_bytes_with_gpt2_words(stdlib_texts: list[str], held_out_texts: list[str]) -> None:
    peer = train_bytes(stdlib_texts, 16_384)
    tok = Tokenizer.train_from_iterator(stdlib_texts, vocab_size=16_384, threshold=1.0, pretokenizer="gpt2")
    assert len(tok.events) == 16_384 - 256
    assert pairs_of(tok.events) == merges_of(peer)
    assert tok.vocab == peer.get_vocab()
    assert tok.encode_batch(held_out_texts) == [encoding.ids for encoding in peer.encode_batch(held_out_texts)]
    assert tok.encode_batch(held_out_texts, mode="post_removal") == tok.encode_batch(held_out_texts)


def test_chars_with_whitespace_words(stdlib_texts: list[str], held_out_texts: list[str]) -> None:
    assert not any(char in text for text in stdlib_texts for char in NOT_COMPARABLE)
    peer = train_chars(stdlib_texts, 8192)
    tok = Tokenizer.train_from_iterator(
        stdlib_texts, vocab_size=8192, threshold=1.0, unit="char", pretokenizer="whitespace", coverage=1.0
    )
    assert pairs_of(tok.events) == merges_of(peer)
    assert tok.vocab == peer.get_vocab()
    known = set(tok.alphabet)
    texts = [text for text in held_out_texts if set("".join(text.split())) <= known]
    assert len(texts) > 20
    assert tok.encode_batch(texts) == [encoding.ids for encoding in peer.encode_batch(texts)]


@pytest.mark.parametrize("seed", range(4))
def test_the_oracle_too(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        letters = "abcé"[: rng.randint(1, 4)]
        words = {
            "▁" + "".join(rng.choices(letters, k=rng.randint(1, 12))): rng.randint(1, 5)
            for _ in range(rng.randint(1, 6))
        }
        size = len({*"".join(words)}) + 1 + rng.randint(0, 20)
        model = oracle.train(
            words, vocab_size=size, threshold=1.0, unit="char", pretokenizer="whitespace", coverage=1.0
        )
        peer = train_chars([f"{word[1:]}\n" * n for word, n in words.items()], size)
        assert pairs_of(model.events) == merges_of(peer)
        assert model.vocab == peer.get_vocab()
