"""`pickytok demo`: plain BPE and Picky BPE side by side on text that every machine with Python has."""

import sysconfig
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pickytok import Merge, Remove, Tokenizer, Trace, WordCounts
from pickytok.cli import progress_bar
from pickytok.inspection import removed_facts, summary

THRESHOLDS = (1.0, 0.9)
SKIPPED = {"site-packages", "dist-packages", "test", "tests", "idle_test", "encodings"}
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
    paths = [out / f"python-t{tok.threshold}.json" for tok in models]
    for tok, path in zip(models, paths, strict=True):
        tok.save(path)

    console = Console(highlight=False)
    console.print(f"Python's standard library: {len(training)} files to train on, {len(held_out)} held out.\n")
    console.print(comparison(models, held_out))
    console.print("\nTokens that had become junk, each removed by the merge that absorbed it:\n")
    console.print(removals(picky))
    trace = telling_word(picky, counts)
    console.print(f"\nThe life of the word {trace.word!r}, event by event:\n")
    console.print(Text(f"{trace}\n"))
    for path in paths:
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
    """The most frequent removed tokens that a reader will recognise, each with the token that absorbed it."""
    facts = sorted(removed_facts(tok), key=lambda fact: not is_readable(fact["token"]))
    table = Table("token", "occurrences", "IoS", "absorbed by")
    table.columns[1].justify = "right"
    for fact in facts[:limit]:
        table.add_row(Text(fact["token"]), f"{fact['frequency']:,}", f"{fact['ios']:.3f}", Text(fact["absorbed_by"]))
    return table


def is_readable(token: str) -> bool:
    letters = token.removeprefix("Ġ")
    return len(letters) >= 6 and letters.isascii() and letters.isalpha()


def telling_word(tok: Tokenizer, counts: WordCounts, limit: int = 20_000) -> Trace:
    """The most frequent word that lost a token which later came back; failing that, one that lost a token."""
    words = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:limit]
    traces = (tok.trace(word) for word, _ in words if len(word) > 5 and word.strip().isalpha())
    return max(traces, key=drama)


def drama(trace: Trace) -> int:
    events = [step.event for step in trace.steps]
    lost = any(isinstance(event, Remove) for event in events)
    return lost + any(isinstance(event, Merge) and event.restored for event in events if lost)
