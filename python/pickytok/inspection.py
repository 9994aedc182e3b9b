"""What a model holds and what its training did, as plain data and as text: `pickytok inspect`."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from pickytok import Merge, Remove, Tokenizer, Trace

STOPS = {
    "vocab_size": "reached the vocabulary size",
    "exhausted": "no pair is left to merge",
    "min_frequency": "no pair left is frequent enough",
}


def summary(tok: Tokenizer) -> dict[str, Any]:
    merges = [event for event in tok.events if isinstance(event, Merge)]
    return {
        "unit": tok.unit,
        "pretokenizer": tok.pretokenizer,
        "threshold": tok.threshold,
        "coverage": tok.coverage,
        "min_frequency": tok.min_frequency,
        "max_token_length": tok.max_token_length,
        "vocab_size": tok.vocab_size,
        "alphabet_size": len(tok.alphabet),
        "special_tokens": tok.special_tokens,
        "merges": len(merges),
        "removals": len(tok.events) - len(merges),
        "restored": sum(merge.restored for merge in merges),
        "gone_in_the_end": len(tok.removed),
        "stop_reason": tok.stop_reason,
    }


def summary_text(facts: dict[str, Any]) -> str:
    return "\n".join(f"{name.replace('_', ' '):<17} {value_text(value)}" for name, value in facts.items())


def event_facts(index: int, event: Merge | Remove) -> dict[str, Any]:
    facts = {"event": index, "kind": type(event).__name__.lower(), **asdict(event)}
    return facts | {"ios": event.ios} if isinstance(event, Remove) else facts


def history(tok: Tokenizer) -> Iterator[dict[str, Any]]:
    """All events; a removal also names the token that absorbed the removed one."""
    made = ""
    for index, event in enumerate(tok.events):
        facts = event_facts(index, event)
        if isinstance(event, Merge):
            made = event.token
        else:
            facts["absorbed_by"] = made
        yield facts


def removed_facts(tok: Tokenizer) -> list[dict[str, Any]]:
    """The last removal of every token that is gone, the most frequent token first."""
    last = {fact["token"]: fact for fact in history(tok) if fact["kind"] == "remove"}
    return sorted((last[token] for token in tok.removed), key=lambda fact: (-fact["frequency"], fact["event"]))


def token_facts(tok: Tokenizer, name: str) -> dict[str, Any]:
    """What happened to a token, given in printable form or as plain text."""
    for token in (name, printable(tok, name)):
        events = [fact for fact in history(tok) if fact["token"] == token]
        number = tok.vocab.get(token)
        if events or number is not None:
            alphabet, special = token in tok.alphabet, token in tok.special_tokens
            return {"token": token, "id": number, "alphabet": alphabet, "special": special, "events": events}
    raise KeyError(f"{name!r} never was a token of this model")


def printable(tok: Tokenizer, text: str) -> str:
    """Plain text as the model writes it: GPT-2's characters for bytes, ▁ for the space before a word."""
    if tok.unit == "char":
        return text.replace(" ", "▁") if tok.pretokenizer == "whitespace" else text
    characters = {tok.id_to_bytes(tok.token_to_id(letter)): letter for letter in tok.alphabet}
    return "".join(characters[bytes([byte])] for byte in text.encode())


def trace_facts(trace: Trace) -> dict[str, Any]:
    steps = [event_facts(step.index, step.event) | {"tokens": step.tokens} for step in trace.steps]
    return {"word": trace.word, "symbols": trace.symbols, "steps": steps, "tokens": trace.tokens}


def token_text(facts: dict[str, Any]) -> str:
    kind = "special token, " if facts["special"] else "alphabet, " if facts["alphabet"] else ""
    end = "not in the vocabulary" if facts["id"] is None else f"{kind}id {facts['id']}"
    return "\n".join(
        [f"{facts['token']}: {end}", *(f"{fact['event']:>9}  {event_text(fact)}" for fact in facts["events"])]
    )


def event_text(fact: dict[str, Any]) -> str:
    if fact["kind"] == "merge":
        verb = "restored" if fact["restored"] else "made"
        return f"{verb} from {fact['left']} + {fact['right']}, {fact['count']:,} times"
    share = f"{fact['absorbed_by']} took {fact['absorbed']:,} of {fact['frequency']:,} (IoS {fact['ios']:.3f})"
    return f"removed: {share}, the rest became {' '.join(fact['parts'])}"


def value_text(value: object) -> str:
    match value:
        case None | []:
            return "none"
        case int():
            return f"{value:,}"
        case list():
            return " ".join(value)
        case _:
            return STOPS.get(str(value), str(value))
