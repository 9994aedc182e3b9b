"""Small random corpora, and everything that the package must agree on with the oracle about each."""

import os
import pickle
import random
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from pprint import pformat
from typing import TypedDict, get_args

import oracle
from oracle import Mode, Unit
from pickytok import Merge, Remove, Tokenizer, WordCounts

MODES: tuple[Mode, ...] = get_args(Mode)
# Up to four symbols; some are several bytes, of which some are shared, and one is ▁ itself.
ALPHABETS = ["a", "ab", "ab", "ab", "abc", "abcd", "é", "éè", "aé", "日本", "a▁", "ab▁", "🙂b"]
STRANGERS = ["z", "ß", "Z🙃", "<unk>", "\u0000"]
SPACES = [" ", "  ", "\n", "\t ", "\u3000", "\x1c", "\u2028\x85"]


class Options(TypedDict):
    vocab_size: int
    threshold: float
    unit: Unit
    pretokenizer: str
    coverage: float | None
    special_tokens: list[str]
    min_frequency: int
    max_token_length: int | None


@dataclass(frozen=True)
class Case:
    words: dict[str, int]
    options: Options
    texts: list[str]

    def __str__(self) -> str:
        return f"words = {pformat(self.words)}\noptions = {pformat(self.options)}\ntexts = {pformat(self.texts)}"


def make_case(seed: int) -> Case:
    rng = random.Random(seed)
    unit: Unit = rng.choice(("byte", "char"))
    pretokenizer = "whitespace" if unit == "char" and rng.random() < 0.6 else "none"
    letters = rng.choice(ALPHABETS)
    if pretokenizer == "none" and rng.random() < 0.2:
        letters += rng.choice((" ", "\n"))
    prefix = oracle.SPACE if pretokenizer == "whitespace" else ""

    stems = [_random_string(rng, letters, rng.choice((2, 3, 5))) for _ in range(3)]
    longest = rng.choice((4, 8, 14, 40))
    size = rng.choice((1, 9, 40, 40, 2**40))
    words = {prefix + _make_word(rng, letters, stems, longest): rng.randint(1, size) for _ in range(rng.randint(1, 9))}

    specials: list[str] = []
    if rng.random() < 0.35:
        spelled = "".join(words)
        for _ in range(rng.randint(1, 3)):
            start = rng.randrange(len(spelled))
            specials.append(spelled[start : start + rng.randint(2, 4)])
        specials += rng.sample(["<unk>", "<s>", "<s>a", "a<"], k=rng.randint(0, 2))
        # In bytes, only what looks the same in printable form: test_training.py looks at the others.
        specials = [s for s in dict.fromkeys(specials) if len(s) > 1 and (unit == "char" or s.isascii())]
        specials = [s for s in specials if not any(char.isspace() for char in s)]

    coverage = rng.choice((None, 1.0, 1.0, 0.95, 0.8, 0.6, 0.3)) if unit == "char" else None
    alphabet = oracle.choose_alphabet(words, unit, coverage)
    least = len(oracle.choose_specials(specials, unit)) + len(alphabet)
    options = Options(
        vocab_size=least + (rng.randint(0, 24) if rng.random() < 0.8 else 1000),
        threshold=rng.choice((0.3, 0.4, 0.45, 0.5, 0.5, 0.6, 0.6, 0.7, 0.8, 0.9, 1.0, rng.uniform(0.3, 1))),
        unit=unit,
        pretokenizer=pretokenizer,
        coverage=coverage,
        special_tokens=specials,
        min_frequency=rng.choice((1, 1, 1, 1, 2, 3, 10)),
        max_token_length=rng.choice((None, None, None, None, rng.randint(1, 9))),
    )
    return Case(words, options, _make_texts(rng, words, options, letters))


def _random_string(rng: random.Random, letters: str, length: int) -> str:
    return "".join(rng.choice(letters) for _ in range(length))


def _make_word(rng: random.Random, letters: str, stems: list[str], longest: int) -> str:
    length = rng.randint(1, longest)
    kind = rng.random()
    if kind < 0.5:
        return _random_string(rng, letters, length)
    if kind < 0.6:
        return rng.choice(letters) * length
    if kind < 0.75:
        return (rng.choice(stems) * length)[:length]
    return "".join(rng.choice(stems) for _ in range(length))[:length]


def _make_texts(rng: random.Random, words: dict[str, int], options: Options, letters: str) -> list[str]:
    whitespace = options["pretokenizer"] == "whitespace"
    known = [word[1:] if whitespace else word for word in words]
    wild = letters + rng.choice(STRANGERS)
    fresh = [_random_string(rng, wild, rng.randint(1, 40)), "".join(rng.choices(known, k=2))]
    if rng.random() < 0.04:  # past every limit between a scan and a queue
        fresh.append(_random_string(rng, letters, rng.randint(100, 300)))
    pieces = [*known, fresh[0], *options["special_tokens"], *options["special_tokens"]]
    mixed = "".join(piece for word in rng.choices(pieces, k=3) for piece in (word, rng.choice(["", *SPACES])))
    return [*rng.sample(known, k=min(4, len(known))), *fresh, mixed]


def check(case: Case, folder: Path) -> Counter[str]:
    """Compares the package with the oracle; counts the rare things that happened."""
    model = oracle.train(case.words, **case.options)
    tok = Tokenizer.train_from_counts(case.words, **case.options)
    _check_training(model, tok)
    _check_words(model, tok)
    for mode in MODES:
        _check_encoding(case, model, tok, mode)
    for text in case.texts:
        _check_trace(model, tok, text)
    _check_file(case, tok, folder)
    return _count_rare(model)


def _same(what: str, where: object, got: object, expected: object) -> None:
    if got != expected:
        raise AssertionError(f"{what} ({where!r})\n     got {got!r}\nexpected {expected!r}")


def _check_training(model: oracle.Model, tok: Tokenizer) -> None:
    for i, (got, expected) in enumerate(zip(tok.events, model.events, strict=False)):
        _same("event", i, got, expected)
    _same("number of events", "", len(tok.events), len(model.events))
    _same("vocab", "", list(tok.vocab.items()), list(model.vocab.items()))
    _same("vocab_size", "", (tok.vocab_size, len(tok)), (len(model.vocab), len(model.vocab)))
    _same("removed", "", tok.removed, model.removed)
    _same("stop_reason", "", tok.stop_reason, model.stop)
    _same("special_tokens", "", tok.special_tokens, model.specials)
    _same("alphabet", "", tok.alphabet, model.alphabet)
    for token, i in model.vocab.items():
        if token in oracle.PRINTABLE_TO_BYTE and model.unit == "byte":
            continue  # 256 of them, the same every time: test_encoding.py
        _same("id_to_token", i, tok.id_to_token(i), token)
        _same("token_to_id", token, tok.token_to_id(token), i)
        _same("id_to_bytes", token, tok.id_to_bytes(i), oracle.token_bytes(model, token))


def _check_words(model: oracle.Model, tok: Tokenizer) -> None:
    """Training words end as training left them; no token is taken for granted because it spells a whole word."""
    for word, segment in model.segments.items():
        _same("replay of a training word", word, oracle.replay(model, word)[0], segment)
        _same("training word", word, tok.tokenize(_as_text(model, word)), segment)
    for token in sorted(model.live - set(model.alphabet))[-8:]:
        word = oracle.token_bytes(model, token).decode(errors="surrogateescape")
        if model.pretokenizer == "whitespace" and (word[0] != oracle.SPACE or len(word) == 1):
            continue  # no text gives this word
        data = _as_text(model, word).encode(errors="surrogateescape")  # a token may end inside a character
        expected = [model.vocab[t] for t in oracle.encode_word(model, word)]
        _same("a token's own string", token, tok.encode_bytes(data), expected)


def _as_text(model: oracle.Model, word: str) -> str:
    return word[1:] if model.pretokenizer == "whitespace" else word


def _check_encoding(case: Case, model: oracle.Model, tok: Tokenizer, mode: Mode) -> None:
    vocab = model.vocab
    batch: list[list[int]] = []
    decoded: list[str] = []
    for text in case.texts:
        tokens, offsets = oracle.encode(model, text, mode)
        ids = [vocab[token] for token in tokens]
        where = (mode, text)
        _same("tokenize", where, tok.tokenize(text, mode=mode), tokens)
        _same("encode", where, tok.encode(text, mode=mode), ids)
        _same("count_tokens", where, tok.count_tokens(text, mode=mode), len(ids))
        _same("encode_bytes", where, tok.encode_bytes(text.encode(), mode=mode), ids)
        _same("encode_with_offsets", where, tok.encode_with_offsets(text, mode=mode), (ids, offsets))
        batch.append(ids)
        decoded.append(oracle.decode(model, tokens))
        _same("decode", where, tok.decode(ids), decoded[-1])
        if model.unit == "byte" or (model.pretokenizer == "none" and oracle.UNK not in tokens):
            _same("round trip", where, decoded[-1], text)
            _same("decode_bytes", where, tok.decode_bytes(ids), text.encode())
    threads = 1 + len(case.words) % 2
    _same("encode_batch", mode, tok.encode_batch(case.texts, mode=mode, num_threads=threads), batch)
    _same("decode_batch", mode, tok.decode_batch(batch, num_threads=threads), decoded)
    flat, bounds = tok.encode_to_numpy(case.texts, mode=mode, num_threads=threads)
    _same("dtypes", mode, (str(flat.dtype), str(bounds.dtype)), ("uint32", "int64"))
    _same("encode_to_numpy", mode, [flat[i:j].tolist() for i, j in pairwise(bounds.tolist())], batch)
    _same("encode_to_numpy", mode, len(flat), sum(map(len, batch)))

    if model.specials:
        text = case.texts[-1]
        some = set(model.specials[::2])
        for allowed in (model.specials, some):
            tokens, offsets = oracle.encode(model, text, mode, allowed)
            ids = [vocab[token] for token in tokens]
            place = (mode, text, allowed)
            arg = allowed if allowed is some else "all"
            _same("special", place, tok.tokenize(text, mode=mode, allowed_special=arg), tokens)
            _same("special", place, tok.encode_with_offsets(text, mode=mode, allowed_special=arg), (ids, offsets))
            _same("special", place, tok.encode_batch([text], mode=mode, allowed_special=arg), [ids])
            for skip in (False, True):
                expected = oracle.decode(model, tokens, skip_special_tokens=skip)
                _same("special", place, tok.decode(ids, skip_special_tokens=skip), expected)


def _check_trace(model: oracle.Model, tok: Tokenizer, text: str) -> None:
    words = oracle.cut(model, text)
    if len(words) == 1:
        word = words[0][0]
        tokens, steps = oracle.replay(model, word)
        trace = tok.trace(text)
        _same("trace.symbols", text, trace.symbols, tuple(oracle.symbols(word, model.unit, model.alphabet)))
        _same("trace.steps", text, trace.steps, tuple(steps))
        _same("trace.tokens", text, trace.tokens, tuple(tokens))


def _check_file(case: Case, tok: Tokenizer, folder: Path) -> None:
    first, second = folder / f"{os.getpid()}-1.json", folder / f"{os.getpid()}-2.json"
    tok.save(first)
    loaded = Tokenizer.load(first)
    loaded.save(second)
    _same("saved again", "", second.read_text(), first.read_text())
    _same("loaded", "", loaded.events, tok.events)
    _same("equal, hash", "", (loaded == tok, hash(loaded) == hash(tok)), (True, True))
    _same("pickle", "", pickle.loads(pickle.dumps(tok)) == tok, True)
    backwards = WordCounts.from_dict(dict(reversed(case.words.items())), pretokenizer=case.options["pretokenizer"])
    _same("order of words", "", Tokenizer.train_from_counts(backwards, **case.options) == tok, True)


def _count_rare(model: oracle.Model) -> Counter[str]:
    seen = Counter({f"stopped: {model.stop}": 1})
    live: set[str] = set()
    for before, event in pairwise([None, *model.events]):
        if isinstance(event, Merge):
            seen["restorations"] += event.restored
            seen["duplicate merges"] += event.token in live
            live.add(event.token)
        elif isinstance(event, Remove):
            seen["double removals"] += isinstance(before, Remove)
            seen["self-pair removals"] += isinstance(before, Merge) and before.left == before.right
            seen["parts beyond two"] += len(event.parts) > 2
            live.remove(event.token)
    pairs = {left + right for tokens in model.segments.values() for left, right in pairwise(tokens)}
    seen["cases where a special token was not made"] += any(pair in model.specials for pair in pairs)
    seen["cases with unknown characters in training"] += any(oracle.UNK in s for s in model.segments.values())
    seen["live tokens that their string does not reach"] += sum(
        oracle.encode_word(model, token) != [token] for token in model.live if model.unit == "char" and len(token) > 1
    )
    return seen


def shrink(case: Case, folder: Path) -> Case:
    """Drops words and texts while the case still fails."""
    progress = True
    while progress:
        progress = False
        smaller = [replace(case, words={w: n for w, n in case.words.items() if w != word}) for word in case.words]
        smaller += [replace(case, texts=[t for t in case.texts if t != text]) for text in case.texts]
        for candidate in smaller:
            if candidate.words and candidate.texts and _fails(candidate, folder):
                case, progress = candidate, True
                break
    return case


def _fails(case: Case, folder: Path) -> bool:
    least = len(oracle.choose_alphabet(case.words, case.options["unit"], case.options["coverage"]))
    least += len(oracle.choose_specials(case.options["special_tokens"], case.options["unit"]))
    if case.options["vocab_size"] < least:
        return False
    try:
        check(case, folder)
    except KeyboardInterrupt:
        raise
    except BaseException:  # a panic of the core is not an Exception
        return True
    return False


def check_many(seeds: range, folder: Path) -> Counter[str]:
    """What a worker process does. Raises with a small case that fails, if there is one."""
    seen = Counter[str]()
    for seed in seeds:
        case = make_case(seed)
        try:
            seen += check(case, folder)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            small = shrink(case, folder)
            raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}\n\nsmallest case:\n{small}") from None
    return seen
