//! Word counts: all that training needs to know of a corpus. They add up: shards give, in any order, the same bytes.

use std::hash::BuildHasher;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::error::{Error, Result};
use crate::model::MAX_COUNT;
use crate::pretokenize::{PreTokenizer, Splitter, unicode_version};
use crate::progress::{Progress, Stage};
use crate::source::{Errors, Source};

/// Words with their counts, sorted by the words' bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordCounts {
    pretokenizer: PreTokenizer,
    unicode: String,
    /// All words, end to end; word `i` is `text[ends[i - 1]..ends[i]]`.
    text: String,
    ends: Vec<usize>,
    counts: Vec<u64>,
    total: u64,
}

impl WordCounts {
    pub(crate) fn empty(pretokenizer: PreTokenizer, unicode: String) -> Self {
        Self { pretokenizer, unicode, text: String::new(), ends: Vec::new(), counts: Vec::new(), total: 0 }
    }

    /// Counts the words of files, on at most `threads` threads.
    pub fn from_files(
        files: &[PathBuf],
        pretokenizer: &PreTokenizer,
        lines: bool,
        errors: Errors,
        threads: usize,
        progress: &Progress,
    ) -> Result<Self> {
        let source = Source::open(files, pretokenizer, lines, errors)?;
        progress.begin(Stage::Count, source.total_bytes());
        let source = Mutex::new(source);
        let count = || -> Result<Counter> {
            let mut counter = Counter::new(pretokenizer);
            loop {
                progress.check()?;
                // A poisoned lock means that another worker panicked; its panic is the one to report.
                let block = source.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next_block()?;
                let Some(block) = block else { return Ok(counter) };
                block.documents(|document| counter.count(document))?;
                progress.advance(block.disk_bytes())?;
            }
        };
        let counters = run(threads, || count().inspect_err(|_| progress.stop()))?;
        Self::from_counters(pretokenizer, counters)
    }

    /// Takes finished words with their counts.
    pub fn from_words<'a>(
        words: impl IntoIterator<Item = (&'a str, u64)>,
        pretokenizer: &PreTokenizer,
    ) -> Result<Self> {
        let mut words: Vec<(&str, u64)> = words.into_iter().collect();
        words.sort_unstable();
        let mut result = Self::empty(pretokenizer.clone(), unicode_version().to_owned());
        for (word, n) in words {
            result.push(word, n)?;
        }
        Ok(result)
    }

    /// Joins the counters of several threads, and puts the words in order.
    pub fn from_counters(pretokenizer: &PreTokenizer, counters: Vec<Counter>) -> Result<Self> {
        let mut all = Words::default();
        for Counter { words, .. } in counters {
            if all.table.is_empty() {
                all = words;
            } else {
                words.table.iter().for_each(|entry| all.add(words.word(entry), entry.count));
            }
        }
        let mut words: Vec<&Counted> = all.table.iter().collect();
        words.sort_unstable_by(|a, b| all.word(a).cmp(all.word(b)));
        let mut result = Self::empty(pretokenizer.clone(), unicode_version().to_owned());
        let mut word = String::new();
        for entry in words {
            word.clear();
            word.push_str(pretokenizer.prefix());
            word.push_str(all.word(entry));
            result.push(&word, entry.count)?;
        }
        Ok(result)
    }

    /// Appends a word that is not before the last one; an equal one is added to it.
    pub(crate) fn push(&mut self, word: &str, n: u64) -> Result<()> {
        if word.is_empty() {
            return Err(Error::value("a word is empty"));
        }
        if n == 0 {
            return Err(Error::value(format!("the count of {word:?} must be at least 1, got 0")));
        }
        self.total =
            self.total.checked_add(n).filter(|&total| total <= MAX_COUNT).ok_or_else(|| {
                Error::value(format!("the total of all counts passes the limit {MAX_COUNT} at {word:?}"))
            })?;
        match self.len().checked_sub(1) {
            Some(last) if self.word(last) == word => self.counts[last] += n,
            _ => {
                self.text.push_str(word);
                self.ends.push(self.text.len());
                self.counts.push(n);
            }
        }
        Ok(())
    }

    /// The counts of both corpora together.
    pub fn add(&self, other: &Self) -> Result<Self> {
        check_same(&self.pretokenizer, &self.unicode, &other.pretokenizer, &other.unicode)?;
        let mut result = Self::empty(self.pretokenizer.clone(), self.unicode.clone());
        let (mut left, mut right) = (self.iter().peekable(), other.iter().peekable());
        loop {
            let next = match (left.peek(), right.peek()) {
                (Some(a), Some(b)) if a.0 <= b.0 => left.next(),
                (Some(_), None) => left.next(),
                (_, Some(_)) => right.next(),
                (None, None) => return Ok(result),
            };
            if let Some((word, n)) = next {
                result.push(word, n)?;
            }
        }
    }

    pub fn pretokenizer(&self) -> &PreTokenizer {
        &self.pretokenizer
    }

    /// The version of the Unicode tables that cut the words.
    pub fn unicode(&self) -> &str {
        &self.unicode
    }

    pub fn len(&self) -> usize {
        self.counts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    pub fn total(&self) -> u64 {
        self.total
    }

    pub fn word(&self, index: usize) -> &str {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..self.ends[index]]
    }

    pub fn count(&self, index: usize) -> u64 {
        self.counts[index]
    }

    pub fn get(&self, word: &str) -> Option<u64> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.word(middle) < word { low = middle + 1 } else { high = middle }
        }
        (low < self.len() && self.word(low) == word).then(|| self.counts[low])
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        (0..self.len()).map(|index| (self.word(index), self.counts[index]))
    }
}

/// Counts may be added only if the same rules cut their words.
pub(crate) fn check_same(
    left: &PreTokenizer,
    left_unicode: &str,
    right: &PreTokenizer,
    right_unicode: &str,
) -> Result<()> {
    if left != right {
        let (left, right) = (left.name(), right.name());
        return Err(Error::value(format!("cannot add counts of pre-tokenizers {left:?} and {right:?}")));
    }
    if left_unicode != right_unicode {
        return Err(Error::value(format!("cannot add counts of Unicode {left_unicode} and {right_unicode}")));
    }
    Ok(())
}

/// Runs the same work on several threads; the first error in the order of threads wins.
pub(crate) fn run<T: Send>(threads: usize, work: impl Fn() -> Result<T> + Sync) -> Result<Vec<T>> {
    if threads <= 1 {
        return Ok(vec![work()?]);
    }
    let results: Vec<Result<T>> = thread::scope(|scope| {
        let workers: Vec<_> = (1..threads).map(|_| scope.spawn(&work)).collect();
        let mut results = vec![work()];
        for worker in workers {
            results.push(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results
    });
    // A worker that was told to stop by another's error has nothing to say itself.
    let mut interrupted = false;
    let mut values = Vec::with_capacity(results.len());
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(Error::Interrupted) => interrupted = true,
            Err(error) => return Err(error),
        }
    }
    if interrupted { Err(Error::Interrupted) } else { Ok(values) }
}

/// A word in a `Counter`.
#[derive(Debug)]
struct Counted {
    start: usize,
    length: usize,
    hash: u64,
    count: u64,
}

/// Counts words on one thread: a table of words whose bytes lie end to end in one buffer.
#[derive(Debug)]
pub struct Counter {
    splitter: Splitter,
    words: Words,
}

#[derive(Debug, Default)]
struct Words {
    table: HashTable<Counted>,
    text: String,
}

const HASHER: FixedState = FixedState::with_seed(0);

impl Counter {
    pub fn new(pretokenizer: &PreTokenizer) -> Self {
        Self { splitter: pretokenizer.splitter(), words: Words::default() }
    }

    /// Counts the words of one document.
    pub fn count(&mut self, document: &str) -> Result<()> {
        let Self { splitter, words } = self;
        splitter.split(document, |word| words.add(word, 1))
    }
}

impl Words {
    fn word(&self, entry: &Counted) -> &str {
        &self.text[entry.start..entry.start + entry.length]
    }

    fn add(&mut self, word: &str, n: u64) {
        let Self { table, text } = self;
        let hash = HASHER.hash_one(word);
        let same = |entry: &Counted| entry.hash == hash && text[entry.start..entry.start + entry.length] == *word;
        match table.entry(hash, same, |entry| entry.hash) {
            Entry::Occupied(mut entry) => entry.get_mut().count += n,
            Entry::Vacant(entry) => {
                entry.insert(Counted { start: text.len(), length: word.len(), hash, count: n });
                text.push_str(word);
            }
        }
    }
}

/// Counts documents on as many threads as there are counters.
pub fn count_documents(counters: &mut [Counter], documents: &[&str], progress: &Progress) -> Result<()> {
    let next = AtomicUsize::new(0);
    let count = |counter: &mut Counter| -> Result<()> {
        while let Some(document) = documents.get(next.fetch_add(1, Relaxed)) {
            counter.count(document)?;
            progress.advance(document.len() as u64)?;
        }
        Ok(())
    };
    let (first, others) = counters.split_first_mut().ok_or_else(|| Error::value("no counters"))?;
    thread::scope(|scope| {
        let workers: Vec<_> = others.iter_mut().map(|counter| scope.spawn(|| count(counter))).collect();
        let mut result = count(first);
        for worker in workers {
            result = result.and(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        result
    })
}
