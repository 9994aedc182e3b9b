"""What training did, as plain data: merges, removals, and the life of one word."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Merge:
    """`left` and `right` became `token` at every place where they stood side by side.

    `count` is the number of merges performed. `restored` tells that the token had been removed
    and is back (the paper's second chance).
    """

    left: str
    right: str
    token: str
    count: int
    restored: bool


@dataclass(frozen=True, slots=True)
class Remove:
    """`token` left the vocabulary; what remained of it was split into `parts`.

    The merge just before it consumed `absorbed` of the `frequency` occurrences of the token.
    """

    token: str
    parts: tuple[str, ...]
    absorbed: int
    frequency: int

    @property
    def ios(self) -> float:
        """Intersection over self: the share of the occurrences that one merge absorbed."""
        return float(self.absorbed) / float(self.frequency)


@dataclass(frozen=True, slots=True)
class Step:
    """Event number `index` turned the word into `tokens`."""

    index: int
    event: Merge | Remove
    tokens: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """The life of one word: its first symbols, then every event that touched it. Print it."""

    word: str
    symbols: tuple[str, ...]
    steps: tuple[Step, ...]

    @property
    def tokens(self) -> tuple[str, ...]:
        """What the word is in the end."""
        return self.steps[-1].tokens if self.steps else self.symbols

    def __str__(self) -> str:
        lines = [f"{'start':>9}  {' '.join(self.symbols)}"]
        for step in self.steps:
            match step.event:
                case Merge(left, right, _, _, restored):
                    note = f"merge {left} + {right}" + (" (back again)" if restored else "")
                case Remove(token, parts) as event:
                    note = f"remove {token}, now {' '.join(parts)} (IoS {event.ios:.3f})"
            lines.append(f"{step.index:>9}  {' '.join(step.tokens)}    <- {note}")
        return "\n".join(lines)
