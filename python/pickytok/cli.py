"""The command line: one short function per sub-command.

Data goes to standard output, bars and notes to standard error. Exit codes: 0, 1 for bad data and
failed reads or writes, 2 for wrong usage.
"""

import functools
import io
import json
import operator
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, ParamSpec, TypeAlias

import typer

from pickytok import Tokenizer, WordCounts, __version__, inspection, unicode_version

Progress: TypeAlias = Callable[[str, int, int], None]
Parameters = ParamSpec("Parameters")

BATCH_BYTES = 1 << 22
"""How much text `encode` and `decode` hold at a time: enough for all cores, little enough for a pipe."""

STAGES = {"count": "counting", "train": "training", "encode": "encoding"}

app = typer.Typer(
    name="pickytok",
    help="Picky BPE: train and use tokenizers that drop their junk tokens while they train.",
    epilog="To see what it does, without any data: pickytok demo",
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Runs the command line; standard streams are UTF-8 everywhere."""
    for stream, errors in ((sys.stdout, "strict"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)
    app()


def show_version(asked: bool) -> None:
    if asked:
        print(f"pickytok {__version__} (Unicode {unicode_version})")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None: ...


def command(example: str) -> Callable[[Callable[Parameters, None]], Callable[Parameters, None]]:
    """Makes a function a sub-command that answers bad data with one line and exit code 1."""

    def register(function: Callable[Parameters, None]) -> Callable[Parameters, None]:
        @functools.wraps(function)
        def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
            try:
                function(*args, **kwargs)
                sys.stdout.flush()
            except BrokenPipeError:
                # Whoever read our output has seen enough. What is still buffered must not fail at exit.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            except KeyboardInterrupt:
                raise typer.Exit(130) from None
            except (ValueError, OSError, KeyError) as error:
                note(f"error: {message_of(error)}")
                raise typer.Exit(1) from None

        return app.command(epilog=f"\b\nExample:\n  {example}")(run)

    return register


def message_of(error: Exception) -> str:
    """One line; a `KeyError` would quote its message, an `OSError` of ours may have no number."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    message = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return " ".join(message.split())


def note(message: str) -> None:
    print(f"pickytok: {message}", file=sys.stderr)


# --- files and streams


def source(path: str) -> str:
    """The path of a count or model file; `-` is standard input (which text files know by themselves)."""
    return "/dev/stdin" if path == "-" else path


@contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    if path == "-":
        yield sys.stdin.buffer
    else:
        with Path(path).open("rb") as stream:
            yield stream


@contextmanager
def destination(path: str) -> Iterator[Path]:
    """Where to write: refused before the long work if it cannot succeed; `-` is standard output."""
    if path == "-":
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder, "output")
            yield target
            with target.open("rb") as written:
                shutil.copyfileobj(written, sys.stdout.buffer)
        return
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{path}: is a directory; name a file to write")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path}: the folder {target.parent} does not exist")
    yield target


def documents(stream: BinaryIO, lines: bool) -> Iterator[list[tuple[bytes, bytes]]]:
    """Batches of documents, each with its line end, which a last line may lack."""
    if not lines:
        yield [(stream.read(), b"\n")]
        return
    while batch := stream.readlines(BATCH_BYTES):
        yield [(line[:-1], b"\n") if line.endswith(b"\n") else (line, b"") for line in batch]


@contextmanager
def progress_bar() -> Iterator[Progress | None]:
    """A callback that draws a bar per stage on standard error; none when that is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TimeElapsedColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, progress.TaskID] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(STAGES.get(stage, stage), total=None)
            bars.update(tasks[stage], completed=done, total=total or None)

        yield show


# --- options that several sub-commands share


def share(value: float | None) -> float | None:
    if value is not None and not 0 < value <= 1:
        raise typer.BadParameter(f"{value} is not in (0, 1]")
    return value


Errors: TypeAlias = Literal["strict", "replace"]
Mode: TypeAlias = Literal["events", "post_removal", "greedy", "shortest"]

TEXT_FILES = "Text or JSONL, plain, .gz or .zst; - is standard input."
WORDS = "How text is cut: gpt4 (default), gpt4o, gpt2, whitespace, none or regex:PATTERN."
INVALID = "Invalid UTF-8: strict (default) stops, replace puts U+FFFD."

Files = Annotated[list[str], typer.Argument(metavar="FILES", help=TEXT_FILES, show_default=False)]
CountsOut = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The count file; - is standard output.")]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="A model file.", show_default=False)]
Invalid = Annotated[Errors, typer.Option(help=INVALID, show_default=False)]
Threads = Annotated[int | None, typer.Option(min=1, metavar="N", help="At most so many; default: all cores.")]
AsLines = Annotated[bool, typer.Option("--lines/--no-lines", help="A document a line, or all of the input as one.")]


def given(**options: Any) -> dict[str, Any]:
    """The options that the user set; the rest is left to the API's defaults and presets."""
    return {name: value for name, value in options.items() if value is not None}


# --- counting and training


@command("pickytok count news.en web.jsonl.zst -o all.counts")
def count(
    files: Files,
    *,
    output: CountsOut,
    pretokenizer: Annotated[str, typer.Option(metavar="NAME", help=WORDS, show_default=False)] = "gpt4",
    lines: Annotated[bool, typer.Option("--lines", help="Each line of a text file is a document.")] = False,
    errors: Invalid = "strict",
    threads: Threads = None,
) -> None:
    """Count the words of a corpus, all that training needs of it."""
    with destination(output) as path:
        with progress_bar() as progress:
            counts = WordCounts.from_files(
                files,
                pretokenizer=pretokenizer,
                lines=lines,
                errors=errors,
                num_threads=threads,
                progress=progress,
            )
        counts.save(path)
    note(f"{counts.total:,} words, {len(counts):,} different")


@command("pickytok merge shard-*.counts -o all.counts")
def merge(
    files: Annotated[list[str], typer.Argument(metavar="FILES", help="Count files.", show_default=False)],
    output: CountsOut,
) -> None:
    """Add up count files, in memory that does not grow with them."""
    with destination(output) as path:
        WordCounts.merge_files(map(source, files), path)


@command("pickytok train news.en -o en.json --vocab-size 32768 --threshold 0.9")
def train(
    files: Files,
    *,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The model; - is standard output.")],
    vocab_size: Annotated[
        int, typer.Option(min=1, metavar="N", help="Tokens in the end, alphabet and special tokens included.")
    ],
    threshold: Annotated[
        float,
        typer.Option(
            metavar="T",
            callback=share,
            help="In (0, 1]: a token goes once one merge absorbs this share of it; 1 removes nothing (plain BPE).",
        ),
    ],
    counts: Annotated[bool, typer.Option("--counts", help="FILES are count files; they are added up.")] = False,
    unit: Annotated[Literal["byte", "char"] | None, typer.Option(help="What words are made of; default: byte.")] = None,
    pretokenizer: Annotated[str | None, typer.Option(metavar="NAME", help=WORDS)] = None,
    preset: Annotated[
        Literal["paper"] | None,
        typer.Option(help="chars, whitespace words, coverage 0.9999, lines, and <pad> <unk> <bos> <eos>."),
    ] = None,
    coverage: Annotated[
        float | None,
        typer.Option(metavar="SHARE", callback=share, help="Of all characters, how many the alphabet covers."),
    ] = None,
    special_token: Annotated[
        list[str] | None, typer.Option(metavar="TOKEN", help="A token that no merge makes; may be given again.")
    ] = None,
    min_frequency: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Stop when the most frequent pair is rarer.")
    ] = None,
    max_token_length: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Longest token to make, in bytes or characters.")
    ] = None,
    lines: Annotated[bool | None, typer.Option(help="Each line of a text file is a document.")] = None,
    errors: Annotated[Errors | None, typer.Option(help=INVALID)] = None,
    threads: Threads = None,
) -> None:
    """Train a tokenizer on text or on count files."""
    reading = given(lines=lines, errors=errors, num_threads=threads)
    if counts and reading:
        raise typer.BadParameter(
            "the words are counted already: --lines, --errors and --threads do not go with it", param_hint="--counts"
        )
    config = given(
        vocab_size=vocab_size,
        threshold=threshold,
        unit=unit,
        pretokenizer=pretokenizer,
        preset=preset,
        coverage=coverage,
        special_tokens=special_token or None,
        min_frequency=min_frequency,
        max_token_length=max_token_length,
    )
    with destination(output) as path:
        with progress_bar() as progress:
            if counts:
                words = functools.reduce(operator.add, map(WordCounts.load, map(source, files)))
                tok = Tokenizer.train_from_counts(words, progress=progress, **config)
            else:
                tok = Tokenizer.train(files, progress=progress, **config, **reading)
        tok.save(path)
    if tok.stop_reason != "vocab_size":
        note(f"stopped at {tok.vocab_size:,} of {vocab_size:,} tokens: {inspection.STOPS[tok.stop_reason]}")
    facts = inspection.summary(tok)
    note("{vocab_size:,} tokens from {merges:,} merges, {removals:,} removals, {restored:,} restored".format(**facts))


# --- encoding and decoding


@command("pickytok encode en.json < news.txt > news.ids")
def encode(
    model: Model,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Text; - is standard input.")] = "-",
    *,
    lines: AsLines = True,
    tokens: Annotated[bool, typer.Option("--tokens", help="Print tokens instead of ids.")] = False,
    mode: Annotated[
        Mode, typer.Option(metavar="MODE", help="events (what training did), post_removal, greedy or shortest.")
    ] = "events",
    allowed_special: Annotated[
        list[str] | None,
        typer.Option(metavar="TOKEN", help="A special token to look for in the text, or all; may be given again."),
    ] = None,
    errors: Invalid = "strict",
    threads: Threads = None,
) -> None:
    """Turn lines of text into lines of ids."""
    tok = Tokenizer.load(model)
    special: Any = "all" if allowed_special == ["all"] else allowed_special or ()
    names = [visible(tok.id_to_token(i)) if tokens else str(i) for i in range(tok.vocab_size)]
    with open_input(file) as stream, progress_bar() as progress:
        total, done, number = size_of(stream), 0, 0
        for batch in documents(stream, lines):
            texts = [text_of(data, errors, number + i) for i, (data, _) in enumerate(batch, 1)]
            for ids, (_, end) in zip(
                tok.encode_batch(texts, allowed_special=special, mode=mode, num_threads=threads), batch, strict=True
            ):
                sys.stdout.buffer.write(" ".join([names[i] for i in ids]).encode() + end)
            number += len(batch)
            done += sum(len(data) + len(end) for data, end in batch)
            if progress:
                progress("encode", done, total)


@command("pickytok encode en.json < news.txt | pickytok decode en.json")
def decode(
    model: Model,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Lines of ids; - is standard input.")] = "-",
    *,
    lines: AsLines = True,
    skip_special_tokens: Annotated[bool, typer.Option("--skip-special-tokens", help="Leave them out.")] = False,
) -> None:
    """Turn lines of ids back into lines of text, byte for byte."""
    tok = Tokenizer.load(model)
    with open_input(file) as stream:
        number = 0
        for batch in documents(stream, lines):
            for data, end in batch:
                number += 1
                try:
                    text = tok.decode_bytes(ids_of(data), skip_special_tokens=skip_special_tokens)
                except (ValueError, KeyError, OverflowError) as error:
                    raise ValueError(f"line {number}: {message_of(error)}") from None
                sys.stdout.buffer.write(text + end if lines else text)


def text_of(data: bytes, errors: Errors, number: int) -> str:
    try:
        return data.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        where = f"line {number}, byte {error.start + 1}"
        raise ValueError(f"{where}: invalid UTF-8 ({error.reason}); --errors replace puts U+FFFD") from None


def ids_of(data: bytes) -> list[int]:
    fields = data.split()
    if data.translate(None, b"0123456789 \t\r\n"):
        wrong = next(field for field in fields if not field.isdigit())
        raise ValueError(f"{wrong.decode(errors='replace')!r} is not an id")
    return list(map(int, fields))


def size_of(stream: BinaryIO) -> int:
    """The size of a file, 0 for anything that has none."""
    try:
        status = os.fstat(stream.fileno())
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def visible(token: str) -> str:
    """A token of the char unit may hold white space, which separates tokens here."""
    return "".join(("␣" if c == " " else repr(c)[1:-1]) if c.isspace() else c for c in token)


# --- looking into a model


@command('pickytok inspect en.json --token " entucky"')
def inspect(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A model file; - is standard input.", show_default=False)
    ],
    token: Annotated[
        str | None, typer.Option(metavar="T", help="When T was made, removed and restored, and at what IoS.")
    ] = None,
    word: Annotated[str | None, typer.Option(metavar="W", help="The life of the word W, event by event.")] = None,
    removed: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="N of the tokens that are gone, the most frequent first.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what training did: in all, to a token, or to a word."""
    if sum(option is not None for option in (token, word, removed)) > 1:
        raise typer.BadParameter("give only one of --token, --word and --removed")
    tok = Tokenizer.load(source(model))
    facts: Any
    if token is not None:
        facts = inspection.token_facts(tok, token)
        text = inspection.token_text(facts)
    elif word is not None:
        trace = tok.trace(word)
        facts, text = inspection.trace_facts(trace), str(trace)
    elif removed is not None:
        facts = inspection.removed_facts(tok)[:removed]
        text = "\n".join(f"{fact['token']}  {inspection.event_text(fact)}" for fact in facts)
    else:
        facts = inspection.summary(tok)
        text = inspection.summary_text(facts)
    print(json.dumps(facts, ensure_ascii=False, indent=2) if as_json else text)


# --- the demo


@command("pickytok demo --out demo --vocab-size 8192")
def demo(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where both models go.")] = Path("demo"),
    vocab_size: Annotated[int, typer.Option(min=257, metavar="N", help="Tokens in each vocabulary.")] = 8192,
) -> None:
    """Train on Python's own library, with removals and without."""
    from pickytok.demo import run

    run(out, vocab_size)
