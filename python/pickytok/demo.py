"""`pickytok demo`: plain BPE and Picky BPE side by side on text that every machine with Python has."""

import sysconfig
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pickytok import Remove, Tokenizer, Trace, WordCounts
from pickytok.cli import progress_bar
from pickytok.inspection import removed_facts, summary

THRESHOLDS = (1.0, 0.9)
SKIPPED = {"site-packages", "dist-packages", "test", "tests", "idle_test"}
HELD_OUT = 10
"""One file in so many is kept from training."""


def run(out: Path, vocab_size: int) -> None:
    """Trains twice, shows what the removals changed, and writes both models into the folder `out`."""
    files = sources()
    held_out = [path.read_bytes().decode("utf-8", "replace") for path in files[::HELD_OUT]]
    training = [path for i, path in enumerate(files) if i % HELD_OUT]
    out.mkdir(parents=True, exist_ok=True)
    with progress_bar() as progress:
        counts = WordCounts.from_files(training, errors="replace", progress=progress)
        models = [
            Tokenizer.train_from_counts(counts, vocab_size=vocab_size, threshold=threshold, progress=progress)
            for threshold in THRESHOLDS
        ]
    picky = models[-1]

    console = Console(highlight=False)
    console.print(f"Python's standard library: {len(training)} files to train on, {len(held_out)} held out.\n")
    console.print(comparison(models, held_out))
    console.print("Removed, and what took their place:")
    console.print(removals(picky))
    word = telling_word(picky, counts)
    console.print(f"The life of {word.word!r}, event by event:")
    console.print(Text(str(word)), "")
    for tok in models:
        path = out / f"python-t{tok.threshold}.json"
        tok.save(path)
        console.print(Text(f"wrote {path}"), soft_wrap=True)


def sources() -> list[Path]:
    """The standard library's own files in a fixed order, without its tests and what was installed."""
    root = Path(sysconfig.get_paths()["stdlib"])
    files = [path for path in root.rglob("*.py") if not SKIPPED & set(path.relative_to(root).parts)]
    if len(files) < HELD_OUT:
        raise FileNotFoundError(f"{root}: this Python has no sources of its standard library to train on")
    return sorted(files, key=lambda path: path.relative_to(root).as_posix())


def comparison(models: list[Tokenizer], held_out: list[str]) -> Table:
    table = Table("", *(f"T = {tok.threshold}" for tok in models))
    for column in table.columns[1:]:
        column.justify = "right"
    facts = [summary(tok) for tok in models]
    lengths = [sum(len(tok.id_to_bytes(i)) for i in range(tok.vocab_size)) / tok.vocab_size for tok in models]
    needed = [sum(map(tok.count_tokens, held_out)) for tok in models]
    rows = {
        "tokens in the vocabulary": [f"{fact['vocab_size']:,}" for fact in facts],
        "removed while training": [f"{fact['removals']:,}" for fact in facts],
        "of these, restored": [f"{fact['restored']:,}" for fact in facts],
        "tokens for the held-out files": [f"{n:,}" for n in needed],
        "mean token length in bytes": [f"{length:.3f}" for length in lengths],
    }
    for name, cells in rows.items():
        table.add_row(name, *cells)
    return table


def removals(tok: Tokenizer, limit: int = 10) -> Table:
    """Some removed tokens that a reader will recognise, each with the token that absorbed it."""
    table = Table("token", "IoS", "absorbed by")
    for fact in readable(removed_facts(tok))[:limit]:
        table.add_row(Text(fact["token"]), f"{fact['ios']:.3f}", Text(fact["absorbed_by"]))
    return table


def readable(facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Removals of pieces of words of at least four letters; all others come after them."""
    return sorted(facts, key=lambda fact: not (len(fact["token"]) >= 4 and fact["token"].strip("Ġ").isalpha()))


def telling_word(tok: Tokenizer, counts: WordCounts, limit: int = 20_000) -> Trace:
    """The most frequent word of letters that lost a token on its way to being one token."""
    words = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:limit]
    traces = [tok.trace(word) for word, _ in words if word.strip().isalpha()]
    return min(traces, key=lambda trace: not any(isinstance(step.event, Remove) for step in trace.steps))
