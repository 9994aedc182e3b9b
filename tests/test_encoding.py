"""Encoding and decoding, on texts that are longer, wilder or more real than those of test_properties.py."""

import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import get_args

import numpy as np
import oracle
import pytest
from oracle import Mode
from pickytok import Merge, PreTokenizer, Remove, Step, Tokenizer, Trace, WordCounts

MODES: tuple[Mode, ...] = get_args(Mode)
PARTITIONS = ["gpt2", "gpt4", "gpt4o", "none", r"regex:\w+|[^\w\s]+", r"regex:\w+(?=\s)"]


def as_model(tok: Tokenizer) -> oracle.Model:
    """The oracle's view of a tokenizer, from its events alone."""
    created, live = list(tok.alphabet), set(tok.alphabet)
    for event in tok.events:
        if isinstance(event, Merge):
            created += [] if event.token in created else [event.token]
            live.add(event.token)
        else:
            live.remove(event.token)
    unit: oracle.Unit = "byte" if tok.unit == "byte" else "char"
    return oracle.Model(
        unit, tok.pretokenizer, tok.special_tokens, tok.alphabet, tok.events, created, live, tok.stop_reason, {}
    )


def random_text(rng: random.Random, length: int) -> str:
    """Any code points but surrogates, mostly low ones, with runs of spaces and letters."""
    ranges = [(0x20, 0x7E), (0x20, 0x7E), (0, 0x20), (0xA0, 0x2FF), (0x370, 0x1FFF), (0x2000, 0x3100), (0x3100, 0xD7FF)]
    ranges += [(0xE000, 0xFFFF), (0x10000, 0x10FFFF), (0x1F300, 0x1F6FF)]
    out: list[str] = []
    while len(out) < length:
        char = chr(rng.randint(*rng.choice(ranges)))
        out += char * rng.choice((1, 1, 1, 2, 5))
    return "".join(out)[:length]


@pytest.fixture(scope="module", params=PARTITIONS)
def lossless(request: pytest.FixtureRequest, stdlib_texts: list[str]) -> Tokenizer:
    name: str = request.param
    texts = [line for text in stdlib_texts[:8] for line in text.split("\n")] if name == "none" else stdlib_texts[:20]
    return Tokenizer.train_from_iterator(
        texts, vocab_size=1000, threshold=0.6, pretokenizer=name, special_tokens=["<s>", "<s>!", "[é]"]
    )


# Round trips


def test_any_text_comes_back(lossless: Tokenizer) -> None:
    rng = random.Random(3)
    texts = [random_text(rng, rng.choice((0, 1, 2, 5, 30, 200))) for _ in range(400)]
    texts += ["", " ", "\r\n", "a\r\n\r\nb  \n c", "\u0000", "\U0010ffff", "🏳️‍🌈 e\u0301"]
    for mode in MODES:
        batch = lossless.encode_batch(texts, mode=mode)
        assert lossless.decode_batch(batch, errors="strict") == texts
        for text, ids in zip(texts, batch, strict=True):
            assert lossless.decode(ids) == text
            assert lossless.decode_bytes(ids) == text.encode()
            assert lossless.encode(text, mode=mode) == ids
            assert lossless.encode_bytes(text.encode(), mode=mode) == ids


def test_any_bytes_come_back(lossless: Tokenizer) -> None:
    rng = random.Random(4)
    data = [rng.randbytes(rng.choice((0, 1, 2, 7, 50, 300))) for _ in range(400)]
    data += [b"\xff", b"caf\xc3", b"\xc3 caf\xc3\xa9 \xf0\x9f", b"\xed\xa0\x80", b"ab\xffcd " * 20]
    for mode in MODES:
        for piece in data:
            ids = lossless.encode_bytes(piece, mode=mode)
            assert lossless.decode_bytes(ids) == piece
            assert lossless.decode(ids) == piece.decode(errors="replace")


def test_bytes_that_are_no_text_are_one_word_without_pretokenizer() -> None:
    """SPEC 1: `none` makes the whole document one word, whatever its bytes are."""
    tok = Tokenizer.train_from_counts({"éa": 9, "èa": 9}, vocab_size=258, threshold=1.0, pretokenizer="none")
    model = as_model(tok)
    assert "¨a" in tok.vocab  # the second byte of è, and a
    rng = random.Random(5)
    for _ in range(300):
        data = bytes(rng.choices(b"a\xc3\xa8\xa9\xff", k=rng.randint(1, 60)))
        expected = oracle.encode_word(model, data.decode(errors="surrogateescape"))
        assert tok.encode_bytes(data) == [model.vocab[token] for token in expected]


def test_whitespace_text_comes_back(char_tokenizer: Tokenizer, held_out_texts: list[str]) -> None:
    known = {*char_tokenizer.alphabet, " "} - {"▁"}
    texts = [" ".join("".join(c for c in text if c in known or c.isspace()).split()) for text in held_out_texts]
    for mode in MODES:
        assert char_tokenizer.decode_batch(char_tokenizer.encode_batch(texts, mode=mode)) == texts


def test_whitespace_is_lossy_in_the_ways_it_says(tiny_char: Tokenizer) -> None:
    assert tiny_char.decode(tiny_char.encode("  ab\n\tc\x1cab ")) == "ab c ab"
    assert tiny_char.tokenize("▁ab") == ["▁", "▁ab"]
    assert tiny_char.decode(tiny_char.encode("▁ab")) == " ab"
    assert tiny_char.decode(tiny_char.encode("aßb")) == "a<unk>b"
    assert tiny_char.decode(tiny_char.encode("aßb"), skip_special_tokens=True) == "ab"
    assert tiny_char.encode("") == tiny_char.encode(" \n") == []


# The same answer from every method


def test_methods_agree_on_real_text(byte_tokenizer: Tokenizer, held_out_texts: list[str]) -> None:
    for mode in MODES:
        batch = [byte_tokenizer.encode(text, mode=mode) for text in held_out_texts]
        assert byte_tokenizer.encode_batch(held_out_texts, mode=mode) == batch
        assert byte_tokenizer.encode_batch((text for text in held_out_texts), mode=mode, num_threads=2) == batch
        ids, offsets = byte_tokenizer.encode_to_numpy(held_out_texts, mode=mode)
        assert ids.tolist() == [i for row in batch for i in row]
        assert offsets.tolist() == np.cumsum([0, *map(len, batch)]).tolist()
        assert [byte_tokenizer.count_tokens(text, mode=mode) for text in held_out_texts] == list(map(len, batch))
        for text, row in zip(held_out_texts[:8], batch, strict=False):
            assert byte_tokenizer.tokenize(text, mode=mode) == [byte_tokenizer.id_to_token(i) for i in row]
            assert byte_tokenizer.encode_with_offsets(text, mode=mode)[0] == row
            assert byte_tokenizer.encode_bytes(text.encode(), mode=mode) == row


@pytest.mark.parametrize("mode", MODES)
def test_oracle_on_held_out_words(picky_tokenizer: Tokenizer, held_out_texts: list[str], mode: Mode) -> None:
    """Words of real text, replayed naively through thousands of real events."""
    model = as_model(picky_tokenizer)
    assert model.vocab == picky_tokenizer.vocab
    counts = WordCounts.from_iterator(held_out_texts)
    words = random.Random(6).sample([word for word, _ in counts.items()], k=150)
    words += sorted((word for word, _ in counts.items()), key=len)[-5:]
    words += ["".join(words[i : i + 20]).replace(" ", "") for i in range(0, 60, 20)]
    for word in words:
        assert picky_tokenizer.tokenize(word, mode=mode) == [
            token for piece in PreTokenizer("gpt4").split(word) for token in oracle.encode_word(model, piece, mode)
        ]


def test_oracle_on_held_out_chars(char_tokenizer: Tokenizer, held_out_texts: list[str]) -> None:
    model = as_model(char_tokenizer)
    words = sorted({word for text in held_out_texts for word in text.split()})
    for word in random.Random(7).sample(words, k=100):
        assert char_tokenizer.tokenize(word + "ж") == [*oracle.encode_word(model, "▁" + word + "ж")]


def test_a_word_is_the_same_the_second_time(byte_tokenizer: Tokenizer, stdlib_counts: WordCounts) -> None:
    """Caches hold words up to some length, and up to some number."""
    words = [word for word, _ in stdlib_counts.items()][:3000]
    words += ["x" * n + "yz" * n for n in range(1, 200)]
    first = [byte_tokenizer.encode(word) for word in words]
    assert [byte_tokenizer.encode(word) for word in reversed(words)] == first[::-1]
    assert byte_tokenizer.encode_batch([word for word in words for _ in range(2)]) == [
        ids for ids in first for _ in range(2)
    ]


def test_words_on_both_sides_of_every_limit() -> None:
    """Lengths 1 to 150 of a few patterns, so that a scan and a queue both meet each."""
    words = {"abab": 9, "abc": 7, "bca": 7, "aa": 3, "aaaa": 3, "cab": 5, "bcabca": 2}
    tok = Tokenizer.train_from_counts(words, vocab_size=290, threshold=0.4, pretokenizer="none")
    model = oracle.train(words, vocab_size=290, threshold=0.4)
    assert sum(isinstance(event, Remove) for event in tok.events) >= 5
    for pattern in ("a", "ab", "abc", "aabab", "abcab", "aaab"):
        for length in range(1, 151):
            word = (pattern * length)[:length]
            assert tok.tokenize(word) == oracle.encode_word(model, word)


def test_one_megabyte_word_in_every_method() -> None:
    table = bytes(ord("a") + byte % 26 for byte in range(256))
    word = random.Random(8).randbytes(10**6).translate(table).decode()
    tok = Tokenizer.train_from_counts({word[:10_000]: 1}, vocab_size=800, threshold=0.7, pretokenizer="none")
    calls: list[Callable[[], object]] = [
        lambda: tok.encode("a" * 10**6),
        lambda: tok.encode_bytes(word.encode()),
        lambda: tok.count_tokens(word),
        lambda: tok.encode_with_offsets(word),
        lambda: tok.tokenize(word),
        *(partial(tok.encode, word, mode=mode) for mode in MODES),
    ]
    for call in calls:
        start = time.perf_counter()
        call()
        assert time.perf_counter() - start < 4  # two seconds are the promise


# Offsets


def test_offsets_cover_the_text(lossless: Tokenizer) -> None:
    rng = random.Random(9)
    for _ in range(200):
        text = random_text(rng, rng.randint(0, 60))
        ids, offsets = lossless.encode_with_offsets(text)
        byte_at = 0
        starts = [i for i, char in enumerate(text) for _ in char.encode()]
        for i, (start, end) in zip(ids, offsets, strict=True):
            size = len(lossless.id_to_bytes(i))
            assert (start, end) == (starts[byte_at], starts[byte_at + size - 1] + 1)
            byte_at += size
        assert byte_at == len(text.encode())


def test_offsets_of_whitespace_words(tiny_char: Tokenizer) -> None:
    ids, offsets = tiny_char.encode_with_offsets(" abc\n éb")
    assert [tiny_char.id_to_token(i) for i in ids] == ["▁abc", "▁é", "b"]
    assert offsets == [(1, 4), (6, 7), (7, 8)]
    ids, offsets = tiny_char.encode_with_offsets("ßb <s>", allowed_special="all")
    assert [tiny_char.id_to_token(i) for i in ids] == ["▁", "<unk>", "b", "<s>"]
    assert offsets == [(0, 0), (0, 1), (1, 2), (3, 6)]


# Special tokens


def test_special_tokens_are_plain_text_unless_allowed(lossless: Tokenizer) -> None:
    text = "x<s>! [é]<s>"
    special = {lossless.token_to_id(token) for token in lossless.special_tokens}
    assert not special & {*lossless.encode(text)}
    assert not special & {*lossless.encode_bytes(text.encode())}
    for allowed, expected in [
        ("all", ["<s>!", "[é]", "<s>"]),
        ({"<s>"}, ["<s>", "<s>"]),
        (["[é]"], ["[é]"]),
        (("<s>", "<s>!"), ["<s>!", "<s>"]),
    ]:
        tokens = lossless.tokenize(text, allowed_special=allowed)
        assert [token for token in tokens if token in lossless.special_tokens] == expected
        ids = lossless.encode(text, allowed_special=allowed)
        assert [lossless.id_to_token(i) for i in ids] == tokens
        assert lossless.decode(ids) == text
        assert lossless.encode_batch([text], allowed_special=allowed) == [ids]
        assert lossless.encode_to_numpy([text], allowed_special=allowed)[0].tolist() == ids
        assert lossless.count_tokens(text, allowed_special=allowed) == len(ids)
        assert lossless.encode_with_offsets(text, allowed_special=allowed)[0] == ids


def test_pieces_between_special_tokens_are_documents(byte_tokenizer: Tokenizer) -> None:
    pieces = ["a ", " b\n", "", "  c"]
    expected: list[int] = []
    for piece in pieces:
        expected += [*byte_tokenizer.encode(piece), byte_tokenizer.token_to_id("<s>")]
    assert byte_tokenizer.encode("<s>".join([*pieces, ""]), allowed_special={"<s>"}) == expected


def test_decode_without_special_tokens(byte_tokenizer: Tokenizer) -> None:
    ids = byte_tokenizer.encode("<s>é</s>", allowed_special="all")
    assert byte_tokenizer.decode(ids) == "<s>é</s>"
    assert byte_tokenizer.decode(ids, skip_special_tokens=True) == "é"
    assert byte_tokenizer.decode_bytes(ids, skip_special_tokens=True) == "é".encode()
    assert byte_tokenizer.decode_batch([ids, ids[:1]], skip_special_tokens=True) == ["é", ""]


# Decoding


def test_errors_of_decode_are_those_of_python(byte_tokenizer: Tokenizer) -> None:
    rng = random.Random(10)
    for _ in range(300):
        data = bytes(rng.choices(b"ab\xc3\xa9\xe2\x82\xac\xf0\x9f\x92\x96\xed\xa0\x80\xff", k=rng.randint(1, 12)))
        ids = byte_tokenizer.encode_bytes(data)
        assert byte_tokenizer.decode(ids) == data.decode(errors="replace")
        assert byte_tokenizer.decode(ids, errors="ignore") == data.decode(errors="ignore")
        try:
            expected = data.decode()
        except UnicodeDecodeError:
            with pytest.raises(ValueError, match=r"UTF-8|utf-8"):
                byte_tokenizer.decode(ids, errors="strict")
        else:
            assert byte_tokenizer.decode(ids, errors="strict") == expected


def test_decode_takes_arrays(byte_tokenizer: Tokenizer, held_out_texts: list[str]) -> None:
    ids, offsets = byte_tokenizer.encode_to_numpy(held_out_texts)
    assert byte_tokenizer.decode(ids) == "".join(held_out_texts)
    rows = [ids[i:j] for i, j in pairwise(offsets.tolist())]
    assert byte_tokenizer.decode_batch(rows, num_threads=2) == held_out_texts
    assert byte_tokenizer.decode_batch(iter(rows)) == held_out_texts
    assert byte_tokenizer.decode_bytes(tuple(ids[:50].tolist())) == byte_tokenizer.decode_bytes(ids[:50])


def test_nothing_is_nothing(byte_tokenizer: Tokenizer) -> None:
    assert byte_tokenizer.encode("") == []
    assert byte_tokenizer.encode_bytes(b"") == []
    assert byte_tokenizer.count_tokens("") == 0
    assert byte_tokenizer.tokenize("") == []
    assert byte_tokenizer.encode_with_offsets("") == ([], [])
    assert byte_tokenizer.encode_batch([]) == []
    mixed: list[str | bytes] = ["a text", b"bytes", b"\xffbad\x80\x81", "é".encode()]
    for mode in MODES:
        expected = [
            byte_tokenizer.encode(text, mode=mode)
            if isinstance(text, str)
            else byte_tokenizer.encode_bytes(text, mode=mode)
            for text in mixed
        ]
        assert byte_tokenizer.encode_batch(mixed, mode=mode) == expected
    assert byte_tokenizer.encode_batch(["", "a", ""])[::2] == [[], []]
    ids, offsets = byte_tokenizer.encode_to_numpy([])
    assert (ids.tolist(), offsets.tolist()) == ([], [0])
    ids, offsets = byte_tokenizer.encode_to_numpy(["", ""])
    assert (ids.tolist(), offsets.tolist()) == ([], [0, 0, 0])
    assert byte_tokenizer.decode([]) == ""
    assert byte_tokenizer.decode_bytes([]) == b""
    assert byte_tokenizer.decode_batch([]) == []


# The vocabulary


def test_the_byte_alphabet(byte_tokenizer: Tokenizer) -> None:
    assert byte_tokenizer.alphabet == sorted(oracle.PRINTABLE_TO_BYTE)
    for i, char in enumerate(byte_tokenizer.alphabet):
        assert byte_tokenizer.token_to_id(char) == 2 + i
        assert byte_tokenizer.id_to_token(2 + i) == char
        assert byte_tokenizer.id_to_bytes(2 + i) == bytes([oracle.PRINTABLE_TO_BYTE[char]])


def test_vocabulary_accessors(byte_tokenizer: Tokenizer) -> None:
    vocab = byte_tokenizer.vocab
    assert list(vocab.values()) == list(range(len(vocab)))
    assert [byte_tokenizer.id_to_token(i) for i in range(len(vocab))] == list(vocab)
    assert [byte_tokenizer.token_to_id(token) for token in vocab] == list(range(len(vocab)))
    for token, i in vocab.items():
        data = byte_tokenizer.id_to_bytes(i)
        assert data == (token.encode() if i < 2 else bytes(oracle.PRINTABLE_TO_BYTE[char] for char in token))
    assert not {*byte_tokenizer.removed} & {*vocab}


def test_values_given_out_are_copies(tiny: Tokenizer) -> None:
    tiny.vocab.clear()
    tiny.events.clear()
    tiny.removed.append("x")
    tiny.special_tokens.clear()
    tiny.alphabet.clear()
    assert len(tiny.vocab) == tiny.vocab_size
    assert tiny.events
    assert "x" not in tiny.removed
    assert tiny.special_tokens == ["<s>", "<s>a"]
    assert len(tiny.alphabet) == 256


# Traces


def test_trace_of_a_real_word(picky_tokenizer: Tokenizer) -> None:
    model = as_model(picky_tokenizer)
    events = picky_tokenizer.events
    for word in (" something", " self", "unittest", " "):
        trace = picky_tokenizer.trace(word)
        assert isinstance(trace, Trace)
        tokens, steps = oracle.replay(model, word)
        assert trace.tokens == tuple(tokens) == tuple(picky_tokenizer.tokenize(word))
        assert trace.steps == tuple(steps)
        assert all(isinstance(step, Step) and events[step.index] == step.event for step in trace.steps)


def test_trace_reads_well() -> None:
    words = {"abc": 9, "ab": 1}
    tok = Tokenizer.train_from_counts(words, vocab_size=300, threshold=0.9, pretokenizer="none")
    trace = tok.trace("ab")
    assert (trace.word, trace.symbols, trace.tokens) == ("ab", ("a", "b"), ("ab",))
    assert [line.split() for line in str(trace).split("\n")] == [
        ["start", "a", "b"],
        ["0", "ab", "<-", "merge", "a", "+", "b"],
        ["2", "a", "b", "<-", "remove", "ab,", "now", "a", "b", "(IoS", "0.900)"],
        ["3", "ab", "<-", "merge", "a", "+", "b", "(back", "again)"],
    ]


# Batches


def test_batch_takes_any_iterable_and_tells_progress(byte_tokenizer: Tokenizer, held_out_texts: list[str]) -> None:
    def texts() -> Iterator[str]:
        yield from held_out_texts

    told: list[tuple[str, int, int]] = []
    batch = byte_tokenizer.encode_batch(texts(), progress=lambda *args: told.append(args))
    assert batch == byte_tokenizer.encode_batch(tuple(held_out_texts), num_threads=1)
    assert {stage for stage, _, _ in told} <= {"encode"}
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)


def test_an_error_in_the_texts_reaches_the_caller(byte_tokenizer: Tokenizer) -> None:
    def texts() -> Iterator[str]:
        yield "a"
        raise RuntimeError("no more texts")

    with pytest.raises(RuntimeError, match="no more texts"):
        byte_tokenizer.encode_batch(texts())
    with pytest.raises(RuntimeError, match="no more texts"):
        byte_tokenizer.encode_to_numpy(texts())
