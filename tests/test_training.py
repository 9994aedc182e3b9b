"""Training on real text, from every kind of input, with the same bytes out."""

import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import fuzz
import oracle
import pytest
from pickytok import Merge, Remove, Tokenizer, WordCounts


def model_bytes(tok: Tokenizer, folder: Path) -> bytes:
    path = folder / "model.json"
    tok.save(path)
    return path.read_bytes()


# Real text


@pytest.mark.parametrize("threshold", [0.5, 0.9, 1.0])
def test_oracle_on_real_words(stdlib_counts: WordCounts, threshold: float) -> None:
    """The 1200 most frequent words of real text: frequencies of every size, and many ties."""
    words = dict(sorted(stdlib_counts.items(), key=lambda item: (-item[1], item[0]))[:1200])
    model = oracle.train(words, vocab_size=256 + 350, threshold=threshold)
    tok = Tokenizer.train_from_counts(words, vocab_size=256 + 350, threshold=threshold, pretokenizer="gpt4")
    assert tok.events == model.events
    assert tok.vocab == model.vocab
    assert tok.removed == model.removed
    assert [tok.tokenize(word) for word in words] == list(model.segments.values())


def test_every_number_in_the_events_is_true(stdlib_files: list[Path]) -> None:
    """Retells the events on the whole corpus, counting what each says."""
    word_counts = WordCounts.from_files(stdlib_files[:10])
    tok = Tokenizer.train_from_counts(word_counts, vocab_size=1500, threshold=0.5)
    assert sum(isinstance(event, Remove) for event in tok.events) > 200
    counts = dict(word_counts.items())
    corpus = {word: oracle.symbols(word, "byte", tok.alphabet) for word in counts}
    holders: dict[str, set[str]] = {}
    for word, tokens in corpus.items():
        for token in tokens:
            holders.setdefault(token, set()).add(word)
    before: Counter[str] = Counter()
    for event in tok.events:
        if isinstance(event, Merge):
            both = holders.get(event.left, set()) & holders.get(event.right, set())
            before = Counter()
            for side in {event.left, event.right}:
                before[side] = sum(counts[w] * corpus[w].count(side) for w in holders.get(side, ()))
            merges = 0
            for word in both:
                after = oracle.merge(corpus[word], event.left, event.right)
                merges += counts[word] * (len(corpus[word]) - len(after))
                if after != corpus[word]:
                    holders.setdefault(event.token, set()).add(word)
                corpus[word] = after
            assert event.count == merges > 0
            absorbed = 2 * merges if event.left == event.right else merges
        else:
            assert (event.absorbed, event.frequency) == (absorbed, before[event.token])
            assert float(absorbed) / float(before[event.token]) == event.ios >= 0.5
            for word in holders.pop(event.token):
                corpus[word] = oracle.split(corpus[word], event.token, event.parts)
                for part in event.parts:
                    holders[part].add(word)


@pytest.mark.parametrize("threshold", [0.4, 0.7, 1.0])
@pytest.mark.parametrize("size", [256, 257, 1000, 5000])
def test_vocabulary_size_is_exact(stdlib_counts: WordCounts, size: int, threshold: float) -> None:
    tok = Tokenizer.train_from_counts(stdlib_counts, vocab_size=size, threshold=threshold)
    assert tok.vocab_size == len(tok.vocab) == len(tok) == size
    assert tok.stop_reason == "vocab_size"
    assert (tok.threshold, tok.unit, tok.pretokenizer) == (threshold, "byte", "gpt4")
    assert (tok.coverage, tok.min_frequency, tok.max_token_length) == (None, 1, None)
    assert all(isinstance(event, Merge) for event in tok.events) == (threshold == 1 or size < 260)


def test_events_are_enough_to_retell_the_training(picky_tokenizer: Tokenizer) -> None:
    created, live = list(picky_tokenizer.alphabet), set(picky_tokenizer.alphabet)
    for event in picky_tokenizer.events:
        if isinstance(event, Merge):
            assert event.restored == (event.token in created and event.token not in live)
            assert {event.left, event.right} <= live
            created += [] if event.token in created else [event.token]
            live.add(event.token)
        else:
            live.remove(event.token)
            assert set(event.parts) <= live
    assert list(picky_tokenizer.vocab) == [token for token in created if token in live]
    assert picky_tokenizer.removed == [token for token in created if token not in live]
    restored = [event for event in picky_tokenizer.events if isinstance(event, Merge) and event.restored]
    assert len(restored) > 100
    assert len(picky_tokenizer.removed) > 100


# Corners of SPEC that are easier to see alone


def test_special_tokens_in_printable_form() -> None:
    words = {"é": 5, " a": 5, "é a": 1}
    free = Tokenizer.train_from_counts(words, vocab_size=300, threshold=1.0, pretokenizer="none")
    assert {"Ã©", "Ġa"} <= {*free.vocab}
    kept = Tokenizer.train_from_counts(
        words, vocab_size=300, threshold=1.0, pretokenizer="none", special_tokens=["Ã©", "Ġa"]
    )
    merged = {event.token for event in kept.events if isinstance(event, Merge)}
    assert not merged & {"Ã©", "Ġa"}
    assert "Ã©Ġa" in kept.vocab
    assert list(kept.vocab)[:2] == kept.special_tokens == ["Ã©", "Ġa"]


def test_special_strings_in_training_text_are_plain_text() -> None:
    tok = Tokenizer.train_from_iterator(
        ["<s>abc<s>"] * 5, vocab_size=300, threshold=1.0, pretokenizer="none", special_tokens=["<s>"]
    )
    assert "<s>" not in {event.token for event in tok.events if isinstance(event, Merge)}
    assert "<s>abc<s>" in tok.vocab
    assert tok.token_to_id("<s>") == 0


def test_fifty_thousand_special_tokens() -> None:
    """Reserved ids come in large numbers; checking them must not be quadratic."""
    specials = [f"<reserved-{i}>" for i in range(50_000)]
    start = time.perf_counter()
    tok = Tokenizer.train_from_counts(
        {"ab": 2}, vocab_size=50_257, threshold=0.9, pretokenizer="none", special_tokens=specials
    )
    assert tok.encode("ab<reserved-49999><reserved-7>", allowed_special="all") == [50_256, 49_999, 7]
    assert time.perf_counter() - start < 3


def test_training_that_ends_short_says_so() -> None:
    exhausted = Tokenizer.train_from_counts({"ab": 1}, vocab_size=1000, threshold=0.9, pretokenizer="none")
    assert (exhausted.stop_reason, exhausted.vocab_size) == ("exhausted", 257)
    rare = Tokenizer.train_from_counts(
        {"ab": 5, "cd": 4}, vocab_size=1000, threshold=0.9, pretokenizer="none", min_frequency=5
    )
    assert (rare.stop_reason, rare.vocab_size, rare.min_frequency) == ("min_frequency", 257, 5)


def test_a_pair_above_2_to_the_33_comes_first() -> None:
    words = {"xy": 2**33 + 7, "ab": 2**31 + 1, "cd": 2**32 - 1, "ef": 2**31 - 1}
    tok = Tokenizer.train_from_counts(words, vocab_size=260, threshold=0.9, pretokenizer="none")
    assert tok.events == [Merge(w[0], w[1], w, words[w], restored=False) for w in ("xy", "cd", "ab", "ef")]


def test_counts_up_to_the_limit() -> None:
    words = {"aaaa": 2**60, "b": 2**61, "c": 2**60}
    tok = Tokenizer.train_from_counts(words, vocab_size=300, threshold=0.5, pretokenizer="none")
    assert tok.events == oracle.train(words, vocab_size=300, threshold=0.5).events
    merge, second, *_ = tok.events
    assert isinstance(merge, Merge)
    assert isinstance(second, Merge)
    assert (merge.count, second.count) == (2**61, 2**60)


def test_frequencies_beyond_64_bits_are_refused_or_right() -> None:
    """The words are within the limit, the positions of `a` are 2^64."""
    words = {"aaaa": 2**62, "ab": 1}
    try:
        tok = Tokenizer.train_from_counts(words, vocab_size=300, threshold=0.5, pretokenizer="none")
    except ValueError:
        return
    assert tok.events == oracle.train(words, vocab_size=300, threshold=0.5).events


# Every way in, the same model


def test_files_iterator_and_counts_agree(stdlib_files: list[Path], stdlib_texts: list[str]) -> None:
    from_files = Tokenizer.train(stdlib_files, vocab_size=2000, threshold=0.8)
    from_texts = Tokenizer.train_from_iterator(iter(stdlib_texts), vocab_size=2000, threshold=0.8)
    counts = WordCounts.from_files(stdlib_files)
    from_counts = Tokenizer.train_from_counts(counts, vocab_size=2000, threshold=0.8)
    from_dict = Tokenizer.train_from_counts(dict(counts.items()), vocab_size=2000, threshold=0.8, pretokenizer="gpt4")
    assert from_files == from_texts == from_counts == from_dict


def test_threads_order_and_shards_do_not_change_the_bytes(stdlib_files: list[Path], tmp_path: Path) -> None:
    one = Tokenizer.train(stdlib_files, vocab_size=3000, threshold=0.7, num_threads=1)
    two = Tokenizer.train(stdlib_files, vocab_size=3000, threshold=0.7, num_threads=2)
    shuffled = list(stdlib_files)
    random.Random(1).shuffle(shuffled)
    mixed = Tokenizer.train(shuffled, vocab_size=3000, threshold=0.7)
    shards = [WordCounts.from_files(shuffled[i::3], num_threads=1 + i % 2) for i in range(3)]
    added = Tokenizer.train_from_counts(shards[2] + shards[0] + shards[1], vocab_size=3000, threshold=0.7)
    for i, shard in enumerate(shards):
        shard.save(tmp_path / f"{i}.counts")
    WordCounts.merge_files([tmp_path / f"{i}.counts" for i in range(3)], tmp_path / "all.counts")
    merged = Tokenizer.train_from_counts(WordCounts.load(tmp_path / "all.counts"), vocab_size=3000, threshold=0.7)
    expected = model_bytes(one, tmp_path)
    assert [model_bytes(tok, tmp_path) for tok in (two, mixed, added, merged)] == [expected] * 4


def test_split_counts(tmp_path: Path) -> None:
    """{w: 5} is {w: 2} + {w: 3}, in any order."""
    for seed in range(50):
        case = fuzz.make_case(seed)
        name = case.options["pretokenizer"]
        whole = WordCounts.from_dict(case.words, pretokenizer=name)
        most = {word: n - 1 for word, n in case.words.items() if n > 1}
        ones = WordCounts.from_dict(dict.fromkeys(reversed(case.words), 1), pretokenizer=name)
        parts = WordCounts.from_dict(most, pretokenizer=name) + ones if most else ones
        assert parts == whole
        tok = Tokenizer.train_from_counts(parts, **case.options)
        assert model_bytes(tok, tmp_path) == model_bytes(Tokenizer.train_from_counts(whole, **case.options), tmp_path)


def test_paper_preset(stdlib_files: list[Path], char_tokenizer: Tokenizer) -> None:
    assert char_tokenizer == Tokenizer.train(
        stdlib_files,
        vocab_size=4096,
        threshold=0.7,
        unit="char",
        pretokenizer="whitespace",
        coverage=0.9999,
        special_tokens=["<pad>", "<unk>", "<bos>", "<eos>"],
        lines=True,
    )
    assert char_tokenizer.special_tokens == ["<pad>", "<unk>", "<bos>", "<eos>"]
    assert (char_tokenizer.coverage, char_tokenizer.vocab_size) == (0.9999, 4096)


def test_a_keyword_beside_the_preset_wins() -> None:
    words = {"▁ab": 2, "▁c": 1}
    tok = Tokenizer.train_from_counts(
        words, vocab_size=9, threshold=0.9, preset="paper", pretokenizer="none", coverage=0.5, special_tokens=["<s>"]
    )
    assert (tok.unit, tok.coverage, tok.pretokenizer) == ("char", 0.5, "none")
    assert tok.special_tokens == ["<unk>", "<s>"]


def test_lines_are_documents() -> None:
    lines = Tokenizer.train_from_iterator(
        ["ab\nab\r\nab"], vocab_size=300, threshold=1.0, pretokenizer="none", lines=True
    )
    assert lines == Tokenizer.train_from_counts({"ab": 3}, vocab_size=300, threshold=1.0, pretokenizer="none")


# Progress and errors of the caller's own


def test_progress_rises_to_its_total(stdlib_files: list[Path]) -> None:
    told: list[tuple[str, int, int]] = []
    Tokenizer.train(stdlib_files, vocab_size=4000, threshold=0.9, progress=lambda *args: told.append(args))
    assert {stage for stage, _, _ in told} == {"count", "train"}
    for name in ("count", "train"):
        stage = [(done, total) for which, done, total in told if which == name]
        assert [done for done, _ in stage] == sorted(done for done, _ in stage)
        assert all(0 <= done <= total for done, total in stage)
        assert stage[-1][0] == stage[-1][1]


def test_an_error_in_the_iterator_reaches_the_caller() -> None:
    def texts() -> Iterator[str]:
        yield "a b c"
        raise RuntimeError("no more texts")

    with pytest.raises(RuntimeError, match="no more texts"):
        Tokenizer.train_from_iterator(texts(), vocab_size=300, threshold=0.9)


def test_an_error_in_progress_reaches_the_caller(stdlib_files: list[Path]) -> None:
    def progress(stage: str, done: int, total: int) -> None:
        raise RuntimeError(f"stopped in {stage}")

    with pytest.raises(RuntimeError, match="stopped in"):
        Tokenizer.train(stdlib_files, vocab_size=4000, threshold=0.9, progress=progress)


# One enormous word


def letters(n: int) -> str:
    table = bytes(ord("a") + byte % 26 for byte in range(256))
    return random.Random(7).randbytes(n).translate(table).decode()


@pytest.mark.parametrize("word", ["a" * 10**6, letters(10**6)], ids=["one letter", "random letters"])
@pytest.mark.parametrize("threshold", [0.6, 1.0])
def test_one_megabyte_word(word: str, threshold: float) -> None:
    """Two seconds each are the promise; the limits here leave room for a busy machine."""
    start = time.perf_counter()
    tok = Tokenizer.train_from_counts({word: 1}, vocab_size=4096, threshold=threshold, pretokenizer="none")
    trained = time.perf_counter()
    ids = tok.encode(word)
    encoded = time.perf_counter()
    assert tok.decode(ids) == word
    assert trained - start < 4
    assert encoded - trained < 4
    if word[0] != word[1]:
        assert tok.vocab_size == 4096


def test_remove_tells_its_share() -> None:
    assert Remove("ab", ("a", "b"), 9, 10).ios == 0.9
