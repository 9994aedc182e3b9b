"""The oracle judged by itself: named cases that can be followed by hand (METHODS.md 2, SPEC.md), and what always holds.

The same named cases run against the package.
"""

import json
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import fuzz
import oracle
import pytest
from pickytok import Merge, Remove, Tokenizer

VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "vectors" / "training.json").read_text("utf-8"))
Train = Callable[..., Any]


def test_vectors_have_names_of_their_own() -> None:
    assert len({vector["name"] for vector in VECTORS}) == len(VECTORS) >= 30


@pytest.mark.parametrize("train", [oracle.train, Tokenizer.train_from_counts], ids=["oracle", "package"])
@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_vector(vector: dict[str, Any], train: Train) -> None:
    trained = train(vector["words"], **vector["options"])
    assert [as_json(event) for event in trained.events] == vector["events"]
    assert (trained.stop_reason if isinstance(trained, Tokenizer) else trained.stop) == vector["stop"]
    assert trained.removed == vector["removed"]
    vocab: Mapping[str, int] = trained.vocab
    assert list(vocab.values()) == list(range(len(vocab)))
    is_byte = vector["options"]["unit"] == "byte"
    assert [token for token in vocab if not (is_byte and token in oracle.PRINTABLE_TO_BYTE)] == vector["vocab"]
    for word, modes in vector["tokens"].items():
        for mode, tokens in modes.items():
            if isinstance(trained, Tokenizer):
                text = word.removeprefix("▁") if trained.pretokenizer == "whitespace" else word
                assert trained.tokenize(text, mode=mode) == tokens
            else:
                assert oracle.encode_word(trained, word, mode) == tokens


def as_json(event: Merge | Remove) -> list[object]:
    match event:
        case Merge(left, right, token, count):
            assert token == left + right
            return ["+", left, right, count]
        case Remove(token, parts, absorbed, frequency):
            return ["-", token, list(parts), absorbed, frequency]


def test_restored_is_told_only_of_tokens_that_were_removed() -> None:
    for vector in VECTORS:
        removed: set[str] = set()
        for event in oracle.train(vector["words"], **vector["options"]).events:
            if isinstance(event, Merge):
                assert event.restored == (event.token in removed)
                removed.discard(event.token)
            else:
                removed.add(event.token)


@pytest.mark.parametrize("first", range(0, 600, 100))
def test_invariants(first: int) -> None:
    """Training ends, never overshoots, and replay gives what training ended with, in live tokens only."""
    for seed in range(first, first + 100):
        case = fuzz.make_case(seed)
        model = oracle.train(case.words, **case.options)
        live = {*model.specials, *model.alphabet}
        for event, following in pairwise([*model.events, None]):
            if isinstance(event, Merge):
                live.add(event.token)
            elif isinstance(event, Remove):
                live.remove(event.token)
                assert "".join(event.parts) == event.token
                assert set(event.parts) <= live
                assert len(event.parts) > 1
                assert case.options["threshold"] <= event.ios <= 1
            if isinstance(following, Merge):  # a whole step is done, and training goes on
                assert len(live) < case.options["vocab_size"]
        assert live == {*model.vocab} == {*model.specials, *model.live}
        assert len(live) <= case.options["vocab_size"]
        assert (model.stop == "vocab_size") == (len(live) == case.options["vocab_size"])
        for word, segment in model.segments.items():
            symbols = oracle.symbols(word, model.unit, model.alphabet)
            assert oracle.replay(model, word)[0] == segment
            for mode in fuzz.MODES:
                tokens = oracle.encode_word(model, word, mode)
                assert set(tokens) <= {*model.live, oracle.UNK}
                assert "".join(tokens) == "".join(symbols)


def test_replay_needs_the_clock() -> None:
    """METHODS 3.3: after `remove ab`, an earlier merge of a and b does not apply again."""
    events: list[Merge | Remove] = [
        Merge("a", "b", "ab", 9, restored=False),
        Merge("b", "c", "bc", 9, restored=False),
        Remove("ab", ("a", "b"), 9, 9),
    ]
    alphabet = ["a", "b", "c"]
    model = oracle.Model(
        "char", "none", ["<unk>"], alphabet, events, [*alphabet, "ab", "bc"], {*alphabet, "bc"}, "", {}
    )
    assert oracle.encode_word(model, "abc") == ["a", "b", "c"]
    assert oracle.encode_word(model, "bc") == ["bc"]
    assert oracle.encode_word(model, "abc", "post_removal") == ["a", "b", "c"]
    assert oracle.encode_word(model, "abc", "shortest") == ["a", "bc"]


def test_texts() -> None:
    """Words, special tokens, offsets and decoding, worked out by hand."""
    words = {"▁ab": 9, "▁é": 1}
    model = oracle.train(
        words, vocab_size=9, threshold=1.0, unit="char", pretokenizer="whitespace", coverage=1.0, special_tokens=["<s>"]
    )
    assert list(model.vocab) == ["<unk>", "<s>", "a", "b", "é", "▁", "ab", "▁ab", "▁é"]
    tokens, offsets = oracle.encode(model, " ab\u3000éx<s>b", allowed={"<s>"})
    assert tokens == ["▁ab", "▁é", "<unk>", "<s>", "▁", "b"]
    assert offsets == [(1, 3), (4, 5), (5, 6), (6, 9), (9, 9), (9, 10)]
    assert oracle.decode(model, tokens) == "ab é<unk><s> b"
    assert oracle.decode(model, tokens, skip_special_tokens=True) == "ab é b"

    model = oracle.train({"é": 1, "ab": 5}, vocab_size=257, threshold=1.0)
    assert oracle.encode(model, "éab") == (["Ã", "©", "ab"], [(0, 1), (0, 1), (1, 3)])
    assert oracle.decode(model, ["Ã", "©", "ab"]) == "éab"
    assert oracle.decode(model, ["Ã", "ab"]) == "\ufffdab"
