"""Documentation is run: Python blocks, `>>>` examples and the command lines of every page.

The Python blocks of a page are one program, run in an empty folder. Set-up that a reader need not
see stands in a comment of the page: `<!-- python`, the code, `-->`.
"""

import ast
import doctest
import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pickytok
import pytest
from pickytok import cli
from typer.main import get_command
from typer.testing import CliRunner

ROOT = Path(__file__).parent.parent
PAGES = [page for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))] if page.exists()]
SOURCES = sorted([*Path(pickytok.__file__).parent.glob("*.py"), *Path(pickytok.__file__).parent.glob("*.pyi")])

PYTHON = re.compile(r"^(?:```python|<!-- python)\n(.*?)^(?:```|-->)$", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^```(?:console|sh|bash|shell)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPERATORS = {"|", "<", ">", ">>", "&", "&&", "||", ";"}


def line_of(text: str, match: re.Match[str]) -> int:
    return text.count("\n", 0, match.start(1))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": page.stem}
    for match in PYTHON.finditer(text):
        # Empty lines before the code make a traceback name the line of the page.
        exec(compile("\n" * line_of(text, match) + match[1], page, "exec"), namespace)


def command_lines(page: Path) -> Iterator[list[str]]:
    """The calls of pickytok in a page's shell blocks, without pipes and redirections."""
    for match in SHELL.finditer(page.read_text(encoding="utf-8")):
        lines = match[1].replace("\\\n", " ").splitlines()
        prompted = [line[2:] for line in lines if line.startswith("$ ")]
        for line in prompted or lines:
            lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            for operator, words in itertools.groupby(lexer, lambda word: word in OPERATORS):
                call = list(words)
                if not operator and call[0].endswith("pickytok"):
                    yield call[1:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_command_lines(page: Path) -> None:
    """Every call would be understood; what it does is tested elsewhere."""
    group = get_command(cli.app)
    for call in command_lines(page):
        if call[-1] in ("--help", "--version"):
            assert CliRunner().invoke(cli.app, call).exit_code == 0
        else:
            command = group.commands[call[0]]  # type: ignore[attr-defined]
            command.make_context(call[0], call[1:])


def examples() -> Iterator[doctest.DocTest]:
    """The `>>>` examples of all docstrings; they may use every public name."""
    parser = doctest.DocTestParser()
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
                name = f"{source.name}:{getattr(node, 'name', 'module')}"
                line = getattr(node, "lineno", 0)
                test = parser.get_doctest(text, dict(vars(pickytok)), name, str(source), line)
                if test.examples:
                    yield test


@pytest.mark.parametrize("example", list(examples()), ids=lambda example: example.name)
def test_docstrings(example: doctest.DocTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    report: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(example, out=report.append)
    assert result.failed == 0, "".join(report)


def test_there_is_something_to_run() -> None:
    assert len(list(examples())) >= 3
    assert any(PYTHON.search(page.read_text(encoding="utf-8")) for page in PAGES)
