"""The benchmark's own pieces, without peers: adapters of this package, comparisons, fits, tables, the page."""

import json
from pathlib import Path

import compare
import goals
import growth
import hard
import jobs
import peers
import pytest
import report
import runner
from pickytok import Tokenizer

TEXT = "the lucky duck of kentucky\nstruck a lucky truck in the duck pond\n" * 40
SIZE = 264


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    path = tmp_path / "corpus"
    path.write_text(TEXT, encoding="utf-8", newline="\n")
    return str(path)


def test_byte_table() -> None:
    table = peers.byte_of_char()
    assert sorted(table.values()) == list(range(256))
    assert (table["a"], table["Ġ"], table["Ċ"]) == (ord("a"), ord(" "), ord("\n"))


@pytest.mark.parametrize("name", peers.OURS)
def test_our_training(name: str, corpus: str, tmp_path: Path) -> None:
    out, made = tmp_path / "model", tmp_path / "made"
    spec: runner.Json = {"files": [corpus], "vocab_size": SIZE, "threads": 1, "out": str(out), "made": str(made)}
    answer = jobs.train(contestant=name, **spec)
    assert answer["seconds"] > 0
    assert answer["peak_megabytes"] >= answer["before_megabytes"] > 1
    tok = Tokenizer.load(out)
    assert answer["vocab_size"] == tok.vocab_size == SIZE
    tokens = [bytes.fromhex(left + right) for left, right in json.loads(made.read_text())]
    assert {tok.id_to_bytes(i) for i in range(256, SIZE)} <= set(tokens)


def test_our_encoding(corpus: str, tmp_path: Path) -> None:
    model = str(tmp_path / "model")
    Tokenizer.train(corpus, vocab_size=SIZE, threshold=1.0, pretokenizer="gpt2").save(model)
    others = {"ranks": str(tmp_path / "ranks"), "merges": str(tmp_path / "merges")}
    jobs.other_formats(model, **others)
    assert len(Path(others["ranks"]).read_bytes().splitlines()) == SIZE
    models = {"ours": {"pickytok T=1.0": model}, **others}
    name = "pickytok T=1.0"
    spec: runner.Json = {"files": [corpus], "models": models, "calls": 3}
    for kind in jobs.kinds(name, models)["batch"]:
        batch = jobs.encode(contestant=name, kind=kind, threads=1, megabytes=1, digest=True, **spec)
        assert batch["tokens"] == sum(map(len, Tokenizer.load(model).encode_batch(TEXT.splitlines())))
        assert len(batch["warm_seconds"]) == 2
    short = jobs.encode_short(contestant=name, method="encode", count=50, **spec)
    assert short["strings"] == 50
    assert jobs.decode(contestant=name, count=50, **spec)["strings"] == 50
    assert len(jobs.load(model, calls=2)["seconds"]) == 2


def test_cut_repeats_when_the_text_ends(corpus: str, tmp_path: Path) -> None:
    target = tmp_path / "cut"
    small = jobs.cut([corpus, corpus], str(target), 0.001)
    assert 1000 <= small["bytes"] < 1200
    assert not small["duplicated"]
    assert target.read_text().endswith("\n")
    large = jobs.cut([corpus], str(target), 0.01)
    assert large["bytes"] >= 10_000
    assert large["duplicated"]


def test_difference_of_merges() -> None:
    ours = [["aa", "bb"], ["aabb", "cc"], ["dd", "ee"]]
    assert jobs.difference(ours, ours)["equal"]
    swapped = jobs.difference(ours, [["aabb"], ["ddee"], ["aabbcc"]])
    assert (swapped["equal"], swapped["first_difference"], swapped["not_shared"]) == (False, 1, 0)
    assert report.verified(swapped) == "same tokens, order differs from 1 on"
    shorter = jobs.difference(ours, ours[:2])
    assert (shorter["first_difference"], shorter["not_shared"]) == (2, 1)


def test_slope() -> None:
    assert runner.slope((x, 3 * x**0.5) for x in (1, 2, 4, 8)) == pytest.approx(0.5)
    assert runner.slope([(5, 1)]) is None


def test_a_growth_curve_leaves_out_what_did_not_work() -> None:
    def at(x: int, run: runner.Json, *, duplicated: bool = False) -> runner.Json:
        return {"x": x, "duplicated": duplicated, "runs": {"p": [run]}}

    filled = {"seconds": 1.0, "stop_reason": "vocab_size"}
    points = [at(1, filled), at(2, {"error": "no"}), at(3, filled | {"stop_reason": "exhausted"})]
    part = {"points": [*points, at(4, filled, duplicated=True)]}
    assert growth.curve(part, "p", "seconds") == [(1, 1), (4, 1)]
    assert growth.curve(part, "p", "seconds", with_duplicates=False) == [(1, 1)]


def test_failures_are_answers_and_end_the_turns() -> None:
    assert "KeyError" in runner.run("no such job")["error"]
    asked = []

    def measure(name: str) -> runner.Json:
        asked.append(name)
        return {"error": "broken"} if name == "b" else {"seconds": 1.0}

    runs = runner.alternate(3, {"a": None, "b": None, "c": 1}, measure)
    assert asked == ["a", "b", "c", "a", "a"]
    assert runner.values(runs["b"], "seconds") == []
    assert report.error_of(runs["b"]) == "failed: broken"


@pytest.mark.parametrize("name", hard.CASES)
def test_hard_inputs_in_small(name: str, corpus: str, tmp_path: Path) -> None:
    case = hard.CASES[name]
    target, model = str(tmp_path / "input"), str(tmp_path / "model")
    made = hard.make(case.maker, max(20, case.size // 100_000), target, [corpus])
    assert made["bytes"] > 0
    assert hard.train(target, model, 4096, case.options)["vocab_size"] > 1
    assert hard.encode(target, model)["tokens"] > 0


def test_words_of_the_hard_input_are_unique() -> None:
    words = "".join(hard.unique_words(20_000)).split()
    assert len(set(words)) == 20_000


def test_goals() -> None:
    assert {goal.met for goal in goals.all_goals({})} == {None}
    runs = {"pickytok T=0.9": [{"seconds": 1.0, "peak_megabytes": 500.0}], "gigatoken": [{"seconds": 4.0}]}
    found = {goal.figure: goal for goal in goals.all_goals({"train": {"runs": runs}})}
    against = found["training at T = 0.9: time, of gigatoken's without removals"]
    assert (against.measured, against.met) == ("0.250", True)
    assert found["training at T = 0.9: peak memory"].met is False
    assert found["training at T = 0.9: time, of `tokenizers`'"].met is None


def test_table() -> None:
    text = report.table(("", "s", "note"), [("a|b", "1.5 (1.2–1.7)", "x"), ("c", "–", "")])
    assert text.splitlines() == [
        "|  | s | note |",
        "| --- | --: | --- |",
        "| a\\|b | 1.5 (1.2–1.7) | x |",
        "| c | – |  |",
    ]


def test_the_page_keeps_what_is_written_by_hand() -> None:
    page = compare.PAGE.read_text(encoding="utf-8")
    once = report.between_marks(page, "new")
    assert report.between_marks(once, "new") == once
    assert once.startswith(page.partition(report.BEGIN)[0])
    assert f"{report.BEGIN}\n\nnew\n\n{report.END}" in once
    with pytest.raises(ValueError, match="marks"):
        report.between_marks("nothing", "new")


def test_committed_results_render() -> None:
    for path in compare.RESULTS.glob("*.json"):
        results = json.loads(path.read_text(encoding="utf-8"))
        if "parts" in results:
            assert "## Goals" in report.render(results, path.name)
