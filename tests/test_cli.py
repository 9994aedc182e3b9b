"""The command line as a user meets it: pipes, files, exit codes, and what `--help` says."""

import argparse
import contextlib
import importlib.metadata
import json
import os
import pty
import re
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest
import typer
from pickytok import Merge, Remove, Tokenizer, WordCounts, __version__, cli
from typer.testing import CliRunner, Result

PICKYTOK = str(Path(sysconfig.get_path("scripts"), "pickytok"))
HELP_FILE = Path(__file__).parent.parent / "docs" / "cli_help.txt"
COMMANDS = ("count", "merge", "train", "encode", "decode", "inspect", "demo")

CORPUS = Path(argparse.__file__).read_text(encoding="utf-8")
TEXTS = {
    "plain": b"the lucky duck\nkentucky\n",
    "no newline at the end": b"the lucky duck\nkentucky",
    "empty": b"",
    "only a newline": b"\n",
    "empty lines": b"\n\nduck\n\n\n",
    "carriage returns": b"duck\r\n\rduck\r\r\n\r\n\r",
    "line ends that are not": "duck\u2028duck\x0bduck\x85\nduck\u2029".encode(),
    "characters": "Straße 東京 🦆🏽 \u0301\n\ufeff\n\U0010ffff".encode(),
    "zeros and spaces": b"\0 \t  duck  \n   \n",
    "special tokens": b"<s> the <s><s> duck </s>\n",
}


def run(*args: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([PICKYTOK, *map(str, args)], input=stdin, capture_output=True, timeout=120, check=False)


def invoke(*args: str | Path) -> Result:
    return CliRunner().invoke(cli.app, list(map(str, args)))


def error_of(result: subprocess.CompletedProcess[bytes]) -> str:
    """The one clean line that bad data is answered with."""
    assert result.returncode == 1
    lines = result.stderr.decode().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("pickytok: error: ")
    return lines[0].removeprefix("pickytok: error: ")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text(CORPUS, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def model(corpus: Path) -> Path:
    path = corpus.with_name("model.json")
    Tokenizer.train(corpus, vocab_size=600, threshold=0.6, special_tokens=["<s>", "</s>"]).save(path)
    return path


# Counting and training


def test_count_and_merge(corpus: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one.counts", tmp_path / "two.counts"
    result = invoke("count", corpus, "-o", one)
    assert result.exit_code == 0
    assert result.stdout == ""
    counts = WordCounts.from_files(corpus)
    assert result.stderr == f"pickytok: {counts.total:,} words, {len(counts):,} different\n"
    assert WordCounts.load(one) == counts
    assert invoke("merge", one, one, "-o", two).exit_code == 0
    assert WordCounts.load(two) == counts + counts


def test_count_takes_all_options(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.counts"
    options = ("--pretokenizer", "none", "--lines", "--errors", "replace", "--threads", "2")
    assert invoke("count", corpus, "-o", out, *options).exit_code == 0
    assert WordCounts.load(out) == WordCounts.from_files(corpus, pretokenizer="none", lines=True)


def test_counts_through_pipes(corpus: Path) -> None:
    counted = run("count", "-", "-o", "-", stdin=corpus.read_bytes())
    assert counted.returncode == 0
    summed = run("merge", "-", "-o", "-", stdin=counted.stdout)
    assert summed.stdout == counted.stdout
    assert summed.returncode == 0


def test_train(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.json"
    result = invoke("train", corpus, "-o", out, "--vocab-size", "500", "--threshold", "0.6")
    assert result.exit_code == 0
    assert result.stdout == ""
    tok = Tokenizer.load(out)
    assert tok == Tokenizer.train(corpus, vocab_size=500, threshold=0.6)
    merges = sum(isinstance(event, Merge) for event in tok.events)
    removals = len(tok.events) - merges
    assert f"500 tokens from {merges} merges, {removals} removals, " in result.stderr


def test_train_takes_all_options(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.json"
    options = {
        "--unit": "char",
        "--pretokenizer": "whitespace",
        "--coverage": "0.99",
        "--min-frequency": "2",
        "--max-token-length": "5",
        "--errors": "replace",
        "--threads": "1",
    }
    flat = [part for option in options.items() for part in option]
    specials = ("--special-token", "<s>", "--special-token", "</s>")
    result = invoke(
        "train", corpus, "-o", out, "--vocab-size", "200", "--threshold", "0.7", "--lines", *flat, *specials
    )
    assert result.exit_code == 0, result.stderr
    assert Tokenizer.load(out) == Tokenizer.train(
        corpus,
        vocab_size=200,
        threshold=0.7,
        unit="char",
        pretokenizer="whitespace",
        coverage=0.99,
        special_tokens=["<s>", "</s>"],
        min_frequency=2,
        max_token_length=5,
        lines=True,
    )


def test_train_with_the_paper_preset(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.json"
    base = ("train", corpus, "-o", out, "--vocab-size", "200", "--threshold", "0.7", "--preset", "paper")
    assert invoke(*base).exit_code == 0
    assert Tokenizer.load(out) == Tokenizer.train(corpus, vocab_size=200, threshold=0.7, preset="paper")
    assert invoke(*base, "--special-token", "<unk>").exit_code == 0
    assert Tokenizer.load(out).special_tokens == ["<unk>"]


def test_train_on_counts(corpus: Path, tmp_path: Path) -> None:
    counts, out = tmp_path / "one.counts", tmp_path / "model.json"
    WordCounts.from_files(corpus).save(counts)
    result = invoke("train", "--counts", counts, counts, "-o", out, "--vocab-size", "500", "--threshold", "0.6")
    assert result.exit_code == 0
    assert Tokenizer.load(out) == Tokenizer.train([corpus, corpus], vocab_size=500, threshold=0.6)


@pytest.mark.parametrize(
    ("option", "why"),
    [((), "no pair is left to merge"), (("--min-frequency", "50"), "no pair left is frequent enough")],
)
def test_train_says_when_it_ends_short(corpus: Path, tmp_path: Path, option: tuple[str, ...], why: str) -> None:
    out = tmp_path / "model.json"
    result = invoke("train", corpus, "-o", out, "--vocab-size", "99999", "--threshold", "0.9", *option)
    assert result.exit_code == 0
    size = Tokenizer.load(out).vocab_size
    assert result.stderr.startswith(f"pickytok: stopped at {size:,} of 99,999 tokens: {why}\n")


def test_model_through_pipes(corpus: Path) -> None:
    trained = run("train", "-", "-o", "-", "--vocab-size", "500", "--threshold", "0.6", stdin=corpus.read_bytes())
    assert trained.returncode == 0
    facts = json.loads(run("inspect", "-", "--json", stdin=trained.stdout).stdout)
    assert facts["vocab_size"] == 500


# Encoding and decoding


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("mode", ["events", "greedy"])
def test_encode_then_decode_is_the_identity(model: Path, text: bytes, mode: str) -> None:
    ids = run("encode", model, "--mode", mode, stdin=text)
    assert ids.returncode == 0, ids.stderr
    assert ids.stdout.count(b"\n") == text.count(b"\n")
    back = run("decode", model, stdin=ids.stdout)
    assert back.returncode == 0, back.stderr
    assert back.stdout == text


def test_whole_input_as_one_document(model: Path) -> None:
    text = TEXTS["carriage returns"]
    ids = run("encode", model, "--no-lines", stdin=text)
    assert list(map(int, ids.stdout.split())) == Tokenizer.load(model).encode(text.decode())
    assert ids.stdout.count(b"\n") == 1
    assert run("decode", model, "--no-lines", stdin=ids.stdout).stdout == text


def test_encode_and_decode_files(model: Path, corpus: Path, tmp_path: Path) -> None:
    tok = Tokenizer.load(model)
    result = invoke("encode", model, corpus)
    lines = CORPUS.splitlines()
    assert [list(map(int, line.split())) for line in result.stdout.splitlines()] == tok.encode_batch(lines)
    ids = tmp_path / "ids"
    ids.write_text(result.stdout)
    assert invoke("decode", model, ids).stdout == CORPUS


def test_encode_more_than_a_batch(model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, corpus: Path) -> None:
    monkeypatch.setattr(cli, "BATCH_BYTES", 100)
    result = invoke("encode", model, corpus)
    assert len(result.stdout.splitlines()) == CORPUS.count("\n")
    bad = tmp_path / "bad"
    bad.write_bytes(CORPUS.encode() + b"duck \xff\n")
    result = invoke("encode", model, bad)
    assert f"line {CORPUS.count(chr(10)) + 1}, byte 6: invalid UTF-8" in result.stderr


def test_encode_prints_tokens(model: Path) -> None:
    text = "the lucky duck"
    expected = " ".join(Tokenizer.load(model).tokenize(text))
    assert run("encode", model, "--tokens", stdin=text.encode()).stdout.decode() == expected


def test_white_space_in_tokens_shows(tmp_path: Path) -> None:
    path = tmp_path / "char.json"
    Tokenizer.train_from_counts(
        {" a": 3, "b\n": 1}, vocab_size=20, threshold=1.0, unit="char", pretokenizer="none"
    ).save(path)
    assert run("encode", path, "--tokens", "--no-lines", stdin=b" a").stdout.decode() == "␣a\n"
    assert run("encode", path, "--tokens", "--no-lines", stdin=b"b\n").stdout.decode() == "b\\n\n"


def test_special_tokens_only_when_allowed(model: Path) -> None:
    tok = Tokenizer.load(model)
    text = "<s>duck</s>"
    plain = run("encode", model, stdin=text.encode()).stdout.split()
    assert list(map(int, plain)) == tok.encode(text)
    one = run("encode", model, "--allowed-special", "<s>", stdin=text.encode()).stdout.split()
    assert list(map(int, one)) == tok.encode(text, allowed_special={"<s>"})
    both = run("encode", model, "--allowed-special", "all", stdin=text.encode()).stdout
    assert list(map(int, both.split())) == tok.encode(text, allowed_special="all")
    assert run("decode", model, stdin=both).stdout == text.encode()
    assert run("decode", model, "--skip-special-tokens", stdin=both).stdout == b"duck"


def test_invalid_text(model: Path) -> None:
    message = error_of(run("encode", model, stdin=b"duck\nduck \xffduck\n"))
    assert message == "line 2, byte 6: invalid UTF-8 (invalid start byte); --errors replace puts U+FFFD"
    ids = run("encode", model, "--errors", "replace", stdin=b"\xff\n").stdout
    assert run("decode", model, stdin=ids).stdout.decode() == "\ufffd\n"


@pytest.mark.parametrize("field", ["600", "4294967296", "99999999999999999999", "-1", "1.5", "duck", "1_0", "é", "٣"])
def test_decode_names_the_line_of_a_bad_id(model: Path, field: str) -> None:
    message = error_of(run("decode", model, stdin=f"1 2\n\n3 {field}\n".encode()))
    assert message.startswith("line 3: ")
    assert field in message


# Looking into a model


def test_inspect_summary(model: Path) -> None:
    tok = Tokenizer.load(model)
    facts = json.loads(invoke("inspect", model, "--json").stdout)
    assert facts["unit"] == "byte"
    assert facts["pretokenizer"] == "gpt4"
    assert facts["threshold"] == 0.6
    assert facts["vocab_size"] == tok.vocab_size
    assert facts["alphabet_size"] == 256
    assert facts["special_tokens"] == ["<s>", "</s>"]
    assert facts["merges"] + facts["removals"] == len(tok.events)
    assert facts["gone_in_the_end"] == len(tok.removed)
    assert facts["stop_reason"] == "vocab_size"
    text = invoke("inspect", model).stdout
    assert re.search(r"^threshold +0\.6$", text, re.MULTILINE)
    assert re.search(r"^stop reason +reached the vocabulary size$", text, re.MULTILINE)


def test_inspect_a_removed_token(model: Path) -> None:
    tok = Tokenizer.load(model)
    removals = [(i, event) for i, event in enumerate(tok.events) if isinstance(event, Remove)]
    index, event = next((i, event) for i, event in reversed(removals) if event.token in tok.removed)
    merge = next(e for e in reversed(tok.events[:index]) if isinstance(e, Merge))
    facts = json.loads(invoke("inspect", model, "--token", event.token, "--json").stdout)
    assert facts["id"] is None
    assert facts["events"][-1] == {
        "event": index,
        "kind": "remove",
        "token": event.token,
        "parts": list(event.parts),
        "absorbed": event.absorbed,
        "frequency": event.frequency,
        "ios": event.ios,
        "absorbed_by": merge.token,
    }
    text = invoke("inspect", model, "--token", event.token).stdout
    assert text.startswith(f"{event.token}: not in the vocabulary\n")
    assert f"made from {facts['events'][0]['left']} + {facts['events'][0]['right']}, " in text
    share = f"{merge.token} took {event.absorbed:,} of {event.frequency:,} (IoS {event.ios:.3f})"
    assert f"{index}  removed: {share}, the rest became {' '.join(event.parts)}\n" in text


def test_inspect_takes_plain_text(model: Path) -> None:
    tok = Tokenizer.load(model)
    assert invoke("inspect", model, "--token", " the").stdout == invoke("inspect", model, "--token", "Ġthe").stdout
    assert invoke("inspect", model, "--token", " ").stdout == f"Ġ: alphabet, id {tok.token_to_id('Ġ')}\n"
    assert invoke("inspect", model, "--token", "<s>").stdout == "<s>: special token, id 0\n"


def test_inspect_a_restored_token(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    words = {"abc": 9, "ab": 1, " abab": 3, "é": 2}
    tok = Tokenizer.train_from_counts(words, vocab_size=268, threshold=0.6, pretokenizer="none")
    tok.save(path)
    restored = next(event for event in tok.events if isinstance(event, Merge) and event.restored)
    text = invoke("inspect", path, "--token", restored.token).stdout
    assert re.search(r"made from .*\n.*removed: .*\n.*restored from ", text)


def test_inspect_removed_tokens(model: Path) -> None:
    tok = Tokenizer.load(model)
    facts = json.loads(invoke("inspect", model, "--removed", "1000", "--json").stdout)
    assert {fact["token"] for fact in facts} == set(tok.removed)
    assert facts == sorted(facts, key=lambda fact: -fact["frequency"])
    assert len(invoke("inspect", model, "--removed", "1").stdout.splitlines()) == 1


def test_inspect_a_word(model: Path) -> None:
    trace = Tokenizer.load(model).trace(" argument")
    assert invoke("inspect", model, "--word", " argument").stdout == f"{trace}\n"
    facts = json.loads(invoke("inspect", model, "--word", " argument", "--json").stdout)
    assert facts["tokens"] == list(trace.tokens)
    assert [step["tokens"] for step in facts["steps"]] == [list(step.tokens) for step in trace.steps]
    assert [step["event"] for step in facts["steps"]] == [step.index for step in trace.steps]


# The demo


def test_demo(tmp_path: Path) -> None:
    result = run("demo", "--vocab-size", "2000", "--out", tmp_path / "new" / "demo")
    assert result.returncode == 0, result.stderr
    assert result.stderr == b""
    text = result.stdout.decode()
    plain, picky = (Tokenizer.load(tmp_path / "new" / "demo" / f"python-t{t}.json") for t in (1.0, 0.9))
    assert (plain.vocab_size, picky.vocab_size) == (2000, 2000)
    assert plain.removed == []
    assert re.search(r"tokens in the vocabulary \W+ 2,000 \W+ 2,000 ", text)
    assert sum(f" {token} " in text for token in picky.removed) >= 10
    assert "<- remove " in text


# Exit codes


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("count", "nowhere.txt", "-o", "x"), "nowhere.txt"),
        (("count", "nowhere\udcff", "-o", "x"), "nowhere\\udcff"),
        (("count", ".", "-o", "x"), "."),
        (("count", "empty", "-o", "nowhere/x"), "nowhere"),
        (("count", "empty", "-o", "."), "is a directory"),
        (("count", "latin1", "-o", "x"), "latin1"),
        (("count", "text", "-o", "x", "--pretokenizer", "gpt5"), "gpt5"),
        (("count", "text", "-o", "x", "--pretokenizer", "regex:("), "("),
        (("merge", "text", "-o", "x"), "text"),
        (("train", "empty", "-o", "x", "--vocab-size", "300", "--threshold", "0.9"), "empty"),
        (("train", "text", "-o", "x", "--vocab-size", "10", "--threshold", "0.9"), "10"),
        (("train", "text", "-o", "x", "--vocab-size", "300", "--threshold", "0.9", "--coverage", "1"), "coverage"),
        (("encode", "nowhere.json"), "nowhere.json"),
        (("encode", "text"), "text"),
        (("decode", "text"), "text"),
        (("inspect", "text"), "text"),
        (("inspect", "{model}", "--token", "zebra"), "'zebra' never was a token"),
        (("inspect", "{model}", "--word", "two words"), "two words"),
        (("encode", "{model}", "nowhere.txt"), "nowhere.txt"),
        (("encode", "{model}", "text", "--allowed-special", "<no>"), "<no>"),
    ],
)
def test_bad_data_is_one_line_and_exit_1(
    args: tuple[str, ...], said: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").touch()
    Path("latin1").write_bytes(b"stra\xdfe")
    Path("text").write_text("the duck\n")
    message = error_of(run(*(arg.format(model=model) for arg in args)))
    assert said in message
    assert not Path("x").exists()


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("swim",),
        ("count",),
        ("count", "text"),
        ("train", "text", "-o", "x", "--threshold", "0.9"),
        ("train", "text", "-o", "x", "--vocab-size", "many", "--threshold", "0.9"),
        ("train", "text", "-o", "x", "--vocab-size", "-1", "--threshold", "0.9"),
        ("train", "text", "-o", "x", "--vocab-size", "300", "--threshold", "0"),
        ("train", "text", "-o", "x", "--vocab-size", "300", "--threshold", "1.1"),
        ("train", "text", "-o", "x", "--vocab-size", "300", "--threshold", "nan"),
        ("train", "text", "-o", "x", "--vocab-size", "300", "--threshold", "0.9", "--unit", "word"),
        ("train", "text", "-o", "x", "--vocab-size", "300", "--threshold", "0.9", "--counts", "--lines"),
        ("encode", "model", "--mode", "random"),
        ("encode", "model", "--threads", "0"),
        ("inspect", "model", "--token", "a", "--word", "b"),
    ],
)
def test_wrong_usage_is_exit_2(args: tuple[str, ...]) -> None:
    result = run(*args)
    assert result.returncode == 2
    assert b"Traceback" not in result.stderr
    assert b"Usage: pickytok" in result.stderr + result.stdout


def test_a_full_disk_is_exit_1(corpus: Path, model: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            [PICKYTOK, "encode", model, corpus], stdout=full, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert result.returncode == 1
    assert result.stderr == b"pickytok: error: No space left on device\n"


def test_a_broken_pipe_is_success(model: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text(CORPUS * 10)
    encode = subprocess.Popen([PICKYTOK, "encode", model, text], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert encode.stdout
    assert encode.stderr
    with encode.stdout, encode.stderr:
        encode.stdout.readline()
        encode.stdout.close()
        assert encode.stderr.read() == b""
    assert encode.wait(60) == 0


@pytest.mark.parametrize("command", ["encode", "decode", "count"])
def test_ctrl_c_is_quiet(model: Path, command: str, tmp_path: Path) -> None:
    args = ["count", "-", "-o", str(tmp_path / "x")] if command == "count" else [command, str(model)]
    reading, writing = os.pipe()
    process = subprocess.Popen([PICKYTOK, *args], stdin=reading, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    with os.fdopen(reading), os.fdopen(writing), process:
        time.sleep(1.5)  # it is waiting for its input by now
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=20)
        finally:
            process.kill()
    assert process.returncode == 130
    assert errors == b""


# Terminals and help


def test_bars_only_on_a_terminal(corpus: Path, model: Path, tmp_path: Path) -> None:
    """Under a pseudo-terminal there are bars on standard error, and never anything but data on the other."""
    commands: list[tuple[list[str | Path], str]] = [
        (["count", corpus, "-o", tmp_path / "x"], "counting"),
        (["train", corpus, "-o", tmp_path / "x", "--vocab-size", "300", "--threshold", "0.9"], "training"),
        (["encode", model, corpus], "encoding"),
    ]
    for args, label in commands:
        ours, theirs = pty.openpty()
        env = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
        with (tmp_path / "data").open("wb") as data:
            process = subprocess.Popen([PICKYTOK, *args], stdout=data, stderr=theirs, env=env)
        os.close(theirs)
        seen = b""
        with contextlib.suppress(OSError):  # how Linux says that the other side is closed
            while chunk := os.read(ours, 1 << 16):
                seen += chunk
        os.close(ours)
        assert process.wait(60) == 0
        assert label in seen.decode()
        piped = run(*args)
        assert (tmp_path / "data").read_bytes() == piped.stdout
        assert label not in piped.stderr.decode()


def test_version() -> None:
    assert invoke("--version").stdout.startswith(f"pickytok {__version__} ")


def test_rich_is_loaded_only_to_draw() -> None:
    code = "import sys; from pickytok import cli; print(sorted({'rich', 'numpy'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout == "[]\n"


def help_of_all_commands() -> str:
    texts = []
    for command in ("", *COMMANDS):
        result = CliRunner().invoke(cli.app, [*command.split(), "--help"], env={"COLUMNS": "80"})
        assert result.exit_code == 0
        texts.append(f"$ {f'pickytok {command}'.strip()} --help\n{result.stdout.strip()}\n")
    return "\n".join(texts)


def test_help_file() -> None:
    """`docs/cli_help.txt` is what `--help` says; on a mismatch it is written anew, to be looked at and committed."""
    version = f"typer {typer.__version__}"
    found = HELP_FILE.read_text(encoding="utf-8") if HELP_FILE.exists() else ""
    expected = f"The help of all commands (as {version} lays it out).\n\n{help_of_all_commands()}"
    if found and version not in found:
        # Another release lays help out in another way; what it says is the same.
        assert words_of(found) == words_of(expected)
    elif found != expected:
        HELP_FILE.write_text(expected, encoding="utf-8")
        pytest.fail("docs/cli_help.txt was out of date and is now written anew")


def words_of(text: str) -> set[str]:
    return set(re.findall(r"--[a-z-]+", text))


def test_help_has_an_example_for_each_command() -> None:
    assert set(COMMANDS) == {command.callback.__name__ for command in cli.app.registered_commands if command.callback}
    for command in COMMANDS:
        assert f"Example:\n    pickytok {'encode' if command == 'decode' else command} " in help_of_all_commands()


def test_the_entry_point_is_installed() -> None:
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="pickytok")
    assert script.load() is cli.main
