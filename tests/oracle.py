"""SPEC.md sections 2 to 5, transcribed literally: slow, and meant to be obviously right.

A token is its printable string throughout: characters, or bytes in GPT-2's printable alphabet.
Every training step recounts everything, and a word is encoded by replaying the whole event list on it.
The pre-tokenizers are those that need no Unicode table: `none` and `whitespace`.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from pickytok.events import Merge, Remove, Step

Event = Merge | Remove
Unit = Literal["byte", "char"]
Mode = Literal["events", "post_removal", "greedy", "shortest"]

UNK = "<unk>"
SPACE = "▁"


def _printable_bytes() -> dict[int, str]:
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + i) for i, byte in enumerate(others)}


BYTE_TO_PRINTABLE = _printable_bytes()
PRINTABLE_TO_BYTE = {char: byte for byte, char in BYTE_TO_PRINTABLE.items()}


def printable(data: bytes) -> str:
    return "".join(BYTE_TO_PRINTABLE[byte] for byte in data)


# Section 2: alphabet and special tokens


def choose_alphabet(words: Mapping[str, int], unit: Unit, coverage: float | None) -> list[str]:
    if unit == "byte":
        return sorted(PRINTABLE_TO_BYTE)
    chars = Counter[str]()
    for word, n in words.items():
        for char in word:
            chars[char] += n
    kept: list[str] = []
    sum_kept = 0
    for char, n in sorted(chars.items(), key=lambda item: (-item[1], item[0])):
        if float(sum_kept) / float(chars.total()) >= (0.9999 if coverage is None else coverage):
            break
        kept.append(char)
        sum_kept += n
    return sorted({*kept, *({SPACE} & chars.keys())})


def choose_specials(special_tokens: Iterable[str], unit: Unit) -> list[str]:
    specials = list(special_tokens)
    return [UNK, *specials] if unit == "char" and UNK not in specials else specials


def symbols(word: str, unit: Unit, alphabet: Iterable[str]) -> list[str]:
    text = printable(word.encode(errors="surrogateescape")) if unit == "byte" else word
    known = set(alphabet)
    return [char if char in known else UNK for char in text]


# The two rewritings, shared by training and replay


def merge(tokens: Sequence[str], left: str, right: str) -> list[str]:
    out: list[str] = []
    i = 0
    while i < len(tokens):
        if tokens[i : i + 2] == [left, right]:
            out.append(left + right)
            i += 2
        else:
            out.append(tokens[i])
            i += 1
    return out


def split(tokens: Sequence[str], token: str, parts: Sequence[str]) -> list[str]:
    return [piece for t in tokens for piece in (parts if t == token else (t,))]


# Section 3: training


@dataclass(frozen=True)
class Model:
    unit: Unit
    pretokenizer: str
    specials: list[str]
    alphabet: list[str]
    events: list[Event]
    created: list[str]  # the alphabet, then every token that a merge made, in creation order, removed ones included
    live: set[str]
    stop: str
    segments: dict[str, list[str]]  # how training left every word

    @property
    def vocab(self) -> dict[str, int]:
        return {token: i for i, token in enumerate([*self.specials, *(t for t in self.created if t in self.live)])}

    @property
    def removed(self) -> list[str]:
        return [token for token in self.created if token not in self.live]


def train(
    words: Mapping[str, int],
    *,
    vocab_size: int,
    threshold: float,
    unit: Unit = "byte",
    pretokenizer: str = "none",
    coverage: float | None = None,
    special_tokens: Iterable[str] = (),
    min_frequency: int = 1,
    max_token_length: int | None = None,
) -> Model:
    specials = choose_specials(special_tokens, unit)
    alphabet = choose_alphabet(words, unit, coverage)
    corpus = {word: symbols(word, unit, alphabet) for word in words}
    created = list(alphabet)
    live = set(alphabet)
    first_pair: dict[str, tuple[str, str]] = {}
    events: list[Event] = []

    def walk_down(token: str) -> list[str]:
        if token in live:
            return [token]
        left, right = first_pair[token]
        return walk_down(left) + walk_down(right)

    while True:
        if len(specials) + len(live) >= vocab_size:
            stop = "vocab_size"
            break

        f_t = Counter[str]()
        f_p = Counter[tuple[str, str]]()
        for word, tokens in corpus.items():
            for token in tokens:
                f_t[token] += words[word]
            for pair in pairwise(tokens):
                f_p[pair] += words[word]

        # 1. The best pair.
        ids = {token: i for i, token in enumerate(created)}
        candidates = [
            (x1, x2)
            for x1, x2 in f_p
            if not {x1, x2, x1 + x2} & set(specials)  # x1 or x2: <unk>
            and (max_token_length is None or len(x1 + x2) <= max_token_length)
        ]
        if not candidates:
            stop = "exhausted"
            break
        x1, x2 = min(candidates, key=lambda pair: (-f_p[pair], ids[pair[0]], ids[pair[1]]))
        if f_p[x1, x2] < min_frequency:
            stop = "min_frequency"
            break

        # 2. Merge it.
        x3 = x1 + x2
        m = 0
        for word, tokens in corpus.items():
            corpus[word] = merge(tokens, x1, x2)
            m += words[word] * (len(tokens) - len(corpus[word]))
        events.append(Merge(x1, x2, x3, m, restored=x3 in created and x3 not in live))
        if x3 not in created:
            created.append(x3)
            first_pair[x3] = (x1, x2)
        live.add(x3)

        # 3. Decide both removals on the frequencies before the merge.
        absorbed = 2 * m if x1 == x2 else m
        doomed = [
            x
            for x in ([x1] if x1 == x2 else [x1, x2])
            if threshold < 1 and x not in alphabet and float(absorbed) / float(f_t[x]) >= threshold
        ]

        # 4. Apply them.
        for x in doomed:
            live.remove(x)
            parts = walk_down(x)
            events.append(Remove(x, tuple(parts), absorbed, f_t[x]))
            for word, tokens in corpus.items():
                corpus[word] = split(tokens, x, parts)

    return Model(unit, pretokenizer, specials, alphabet, events, created, live, stop, corpus)


# Section 5: encoding


def replay(model: Model, word: str) -> tuple[list[str], list[Step]]:
    """What the word is in the end, and the events that changed it."""
    tokens = symbols(word, model.unit, model.alphabet)
    steps: list[Step] = []
    for i, event in enumerate(model.events):
        match event:
            case Merge(left, right):
                after = merge(tokens, left, right)
            case Remove(token, parts):
                after = split(tokens, token, parts)
        if after != tokens:
            steps.append(Step(i, event, tuple(after)))
        tokens = after
    return tokens, steps


def is_token(symbols: list[str], model: Model) -> bool:
    if len(symbols) == 1:
        return True  # an alphabet token or <unk>
    return UNK not in symbols and "".join(symbols) in model.live


def fewest(symbols: list[str], model: Model) -> list[str]:
    longest = max(len(token) for token in model.live)
    best: list[list[list[str]]] = [[]]  # best[k]: the best split of the last k symbols
    for start in reversed(range(len(symbols))):
        firsts = [symbols[start:end] for end in range(start + 1, min(start + longest, len(symbols)) + 1)]
        splits = [[first, *best[len(symbols) - start - len(first)]] for first in firsts if is_token(first, model)]
        best.append(min(splits, key=lambda split: (len(split), [-len(part) for part in split])))
    return ["".join(part) for part in best[-1]]


def greedy(symbols: list[str], model: Model) -> list[str]:
    longest = max(len(token) for token in model.live)
    tokens: list[str] = []
    while symbols:
        length = max(n for n in range(1, min(longest, len(symbols)) + 1) if is_token(symbols[:n], model))
        tokens.append("".join(symbols[:length]))
        symbols = symbols[length:]
    return tokens


def post_removal(tokens: list[str], model: Model) -> list[str]:
    ranks: dict[tuple[str, str], int] = {}
    for i, event in enumerate(model.events):
        if isinstance(event, Merge):
            ranks.setdefault((event.left, event.right), i)
    while places := [(ranks[pair], i) for i, pair in enumerate(pairwise(tokens)) if pair in ranks]:
        _, i = min(places)
        tokens = [*tokens[:i], tokens[i] + tokens[i + 1], *tokens[i + 2 :]]
    removed = set(model.removed)
    return [part for token in tokens for part in (fewest([*token], model) if token in removed else [token])]


def encode_word(model: Model, word: str, mode: Mode = "events") -> list[str]:
    if mode == "events":
        return replay(model, word)[0]
    how = {"post_removal": post_removal, "greedy": greedy, "shortest": fewest}[mode]
    return how(symbols(word, model.unit, model.alphabet), model)


def cut(model: Model, document: str) -> list[tuple[str, int]]:
    """The words of a document, and where the text of each starts."""
    if model.pretokenizer == "whitespace":
        return [(SPACE + match[0], match.start()) for match in re.finditer(r"\S+", document)]
    return [(document, 0)] if document else []


def encode(
    model: Model, text: str, mode: Mode = "events", allowed: Collection[str] = ()
) -> tuple[list[str], list[tuple[int, int]]]:
    """The tokens of a text, and the characters that each comes from."""
    found = re.compile("|".join(re.escape(special) for special in sorted(allowed, key=len, reverse=True)) or "(?!)")
    tokens: list[str] = []
    offsets: list[tuple[int, int]] = []

    def add_document(start: int, end: int) -> None:
        for word, at in cut(model, text[start:end]):
            width = [0 if model.pretokenizer == "whitespace" else 1, *[1] * (len(word) - 1)]
            ends = [start + at + sum(width[: i + 1]) for i in range(len(word))]
            sizes = [len(char.encode()) if model.unit == "byte" else 1 for char in word]
            chars = [(last - w, last) for last, w, size in zip(ends, width, sizes, strict=True) for _ in range(size)]
            for token in encode_word(model, word, mode):
                size = 1 if token in model.specials else len(token)
                tokens.append(token)
                offsets.append((chars[0][0], chars[size - 1][1]))
                chars = chars[size:]

    last = 0
    for match in found.finditer(text):
        add_document(last, match.start())
        tokens.append(match[0])
        offsets.append(match.span())
        last = match.end()
    add_document(last, len(text))
    return tokens, offsets


def token_bytes(model: Model, token: str) -> bytes:
    if model.unit == "byte" and token not in model.specials:
        return bytes(PRINTABLE_TO_BYTE[char] for char in token)
    return token.encode()


def decode(model: Model, tokens: Iterable[str], *, skip_special_tokens: bool = False) -> str:
    data = b""
    for token in tokens:
        if token not in model.specials and model.pretokenizer == "whitespace":
            data += token.replace(SPACE, " ").encode()
        elif token not in model.specials or not skip_special_tokens:
            data += token_bytes(model, token)
    text = data.decode(errors="replace")
    return text.removeprefix(" ") if model.pretokenizer == "whitespace" else text
