"""Picky BPE: a tokenizer trainer that removes junk tokens while it trains.

>>> from pickytok import Tokenizer
>>> words = {" kentucky": 9, " lucky": 5, " duck": 4}
>>> tok = Tokenizer.train_from_counts(words, vocab_size=260, threshold=0.9, pretokenizer="gpt4")
>>> tok.tokenize(" lucky")
['Ġ', 'l', 'ucky']
"""

from pickytok._core import ModelError, PreTokenizer, Tokenizer, WordCounts, __version__, unicode_version
from pickytok.events import Merge, Remove, Step, Trace

__all__ = [
    "Merge",
    "ModelError",
    "PreTokenizer",
    "Remove",
    "Step",
    "Tokenizer",
    "Trace",
    "WordCounts",
    "__version__",
    "unicode_version",
]
