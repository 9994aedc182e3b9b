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
use crate::prefetch::prefetch;
use crate::pretokenize::{PreTokenizer, Splitter, unicode_version};
use crate::progress::{Progress, Stage};
use crate::short_word::ShortWord;
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
        let source = Source::open(files, pretokenizer, lines, errors, progress)?;
        progress.begin(Stage::Count, source.total_bytes());
        let source = Mutex::new(source);
        let count = || -> Result<Self> {
            let mut counter = Counter::new(pretokenizer);
            loop {
                progress.check()?;
                // A poisoned lock means that another worker panicked; its panic is the one to report.
                let block = source.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next_block()?;
                let Some(block) = block else { return counter.finish(pretokenizer) };
                block.documents(|document| counter.count(document))?;
                progress.advance(block.disk_bytes())?;
            }
        };
        let counts = run(threads, || count().inspect_err(|_| progress.stop()))?;
        Self::sum(pretokenizer, counts)
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

    /// Joins the counters of several threads.
    pub fn from_counters(pretokenizer: &PreTokenizer, counters: Vec<Counter>) -> Result<Self> {
        let counts: Vec<Result<Self>> = thread::scope(|scope| {
            let workers: Vec<_> =
                counters.into_iter().map(|counter| scope.spawn(|| counter.finish(pretokenizer))).collect();
            workers.into_iter().map(join).collect()
        });
        Self::sum(pretokenizer, counts.into_iter().collect::<Result<_>>()?)
    }

    /// Adds up counts in pairs, so that no word is copied more often than it must.
    fn sum(pretokenizer: &PreTokenizer, mut counts: Vec<Self>) -> Result<Self> {
        while counts.len() > 1 {
            let mut sums = Vec::with_capacity(counts.len().div_ceil(2));
            let mut rest = counts.into_iter();
            while let Some(first) = rest.next() {
                sums.push(match rest.next() {
                    Some(second) => first.add(&second)?,
                    None => first,
                });
            }
            counts = sums;
        }
        Ok(counts.pop().unwrap_or_else(|| Self::empty(pretokenizer.clone(), unicode_version().to_owned())))
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

    /// The length of all words together, each taken once.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len()
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

/// Waits for a thread; its panic goes on here.
fn join<T>(worker: thread::ScopedJoinHandle<'_, T>) -> T {
    worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
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
            results.push(join(worker));
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

/// Counts words on one thread.
#[derive(Debug)]
pub struct Counter {
    splitter: Splitter,
    words: Words,
}

impl Counter {
    pub fn new(pretokenizer: &PreTokenizer) -> Self {
        Self { splitter: pretokenizer.splitter(), words: Words::default() }
    }

    /// Counts the words of one document.
    pub fn count(&mut self, document: &str) -> Result<()> {
        let Self { splitter, words } = self;
        splitter.split_keyed(document, |word, key| {
            if key.is_none() {
                words.long.add(word, 1);
            } else {
                words.short.count(key);
            }
        })
    }

    /// The words in order. Sorted lists are what threads exchange: to insert the words of one hash table into another
    /// in the order of their places would fill it region by region, in quadratic time.
    fn finish(mut self, pretokenizer: &PreTokenizer) -> Result<WordCounts> {
        self.words.short.flush();
        let mut counts = WordCounts::empty(pretokenizer.clone(), unicode_version().to_owned());
        let mut marked = pretokenizer.prefix().to_owned();
        let mark = marked.len();
        self.words.in_order(|bytes, n| {
            marked.truncate(mark);
            marked.push_str(str::from_utf8(bytes).expect("words are cut from text"));
            counts.push(&marked, n)
        })?;
        Ok(counts)
    }
}

/// Words with their counts, in no order.
#[derive(Debug, Default)]
struct Words {
    short: ShortWords,
    long: LongWords,
}

/// Words of at most 15 bytes: a table with open addressing, at most seven tenths full, whose keys lie in place.
#[derive(Debug, Default)]
struct ShortWords {
    table: Vec<(ShortWord, u64)>,
    len: usize,
    /// Words that wait for their cache lines.
    waiting: [ShortWord; WAITING],
    waiting_len: usize,
}

/// So many words are collected before the first is looked up; their places are fetched meanwhile. A small table of the
/// last words in front of the large one was tried instead: 0.56 s for what takes 0.51 s, as its misses are hard to
/// predict (and encoding, done so, fell from 200 to 155 MB/s).
const WAITING: usize = 16;

/// The others: their bytes lie end to end in one buffer.
#[derive(Debug, Default)]
struct LongWords {
    table: HashTable<LongWord>,
    text: Vec<u8>,
}

#[derive(Debug)]
struct LongWord {
    start: usize,
    length: usize,
    hash: u64,
    count: u64,
}

impl Words {
    /// Calls `each` for every word in the order of their bytes.
    fn in_order(&self, mut each: impl FnMut(&[u8], u64) -> Result<()>) -> Result<()> {
        // A short word that begins a long one comes before it, as its length is below that of no word.
        let mut words: Vec<(u128, &[u8], u64)> =
            self.short.iter().map(|(word, n)| (word.order(), &[][..], n)).collect();
        words.extend(self.long.table.iter().map(|word| {
            let bytes = self.long.bytes(word);
            (ShortWord::new(&bytes[..15]).order() | 0xFF, bytes, word.count)
        }));
        words.sort_unstable();
        for (order, long, n) in words {
            if long.is_empty() {
                let bytes = order.to_be_bytes();
                each(&bytes[..bytes[15] as usize], n)?;
            } else {
                each(long, n)?;
            }
        }
        Ok(())
    }
}

impl ShortWords {
    #[inline]
    fn count(&mut self, word: ShortWord) {
        if let Some(place) = self.table.get(word.place(self.table.len())) {
            prefetch(place);
        }
        self.waiting[self.waiting_len] = word;
        self.waiting_len += 1;
        if self.waiting_len == WAITING {
            self.flush();
        }
    }

    fn flush(&mut self) {
        for index in 0..std::mem::take(&mut self.waiting_len) {
            self.add(self.waiting[index], 1);
        }
    }

    #[inline]
    fn add(&mut self, word: ShortWord, n: u64) {
        if 10 * self.len >= 7 * self.table.len() {
            self.grow();
        }
        let place = self.place(word);
        let (held, count) = &mut self.table[place];
        self.len += usize::from(held.is_none());
        *held = word;
        *count += n;
    }

    /// Where a word is, or where it belongs.
    #[inline]
    fn place(&self, word: ShortWord) -> usize {
        let mut place = word.place(self.table.len());
        loop {
            let held = self.table[place].0;
            if held == word || held.is_none() {
                return place;
            }
            place = if place + 1 < self.table.len() { place + 1 } else { 0 };
        }
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.table.len() * 3 / 2).max(1 << 12);
        let old = std::mem::replace(&mut self.table, vec![(ShortWord::NONE, 0); size]);
        for (word, n) in old.into_iter().filter(|(word, _)| !word.is_none()) {
            let place = self.place(word);
            self.table[place] = (word, n);
        }
    }

    fn iter(&self) -> impl Iterator<Item = (ShortWord, u64)> {
        self.table.iter().copied().filter(|(word, _)| !word.is_none())
    }
}

const HASHER: FixedState = FixedState::with_seed(0);

impl LongWords {
    fn bytes(&self, word: &LongWord) -> &[u8] {
        &self.text[word.start..word.start + word.length]
    }

    fn add(&mut self, word: &[u8], n: u64) {
        let Self { table, text } = self;
        let hash = HASHER.hash_one(word);
        let same = |other: &LongWord| other.hash == hash && text[other.start..other.start + other.length] == *word;
        match table.entry(hash, same, |other| other.hash) {
            Entry::Occupied(mut entry) => entry.get_mut().count += n,
            Entry::Vacant(entry) => {
                entry.insert(LongWord { start: text.len(), length: word.len(), hash, count: n });
                text.extend_from_slice(word);
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
            result = result.and(join(worker));
        }
        result
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn counts_equal_those_of_a_map() {
        // Words of all lengths around the limit of short ones, some often, more of them than the first table holds.
        let words: Vec<String> =
            (0..9000u32).map(|n| format!("{:0width$}", n / 2, width = n as usize / 2 % 21)).collect();
        let pretokenizer = PreTokenizer::new("regex:[^ ]+").unwrap();
        let mut counters = [Counter::new(&pretokenizer), Counter::new(&pretokenizer)];
        let document = words.join(" ");
        count_documents(&mut counters, &[&document, "7 7", &document], &Progress::default()).unwrap();
        let mut expected: BTreeMap<&str, u64> = BTreeMap::new();
        for word in words.iter().chain(&words).map(String::as_str).chain(["7", "7"]) {
            *expected.entry(word).or_default() += 1;
        }
        expected.insert(" ", 2 * 8999 + 1);
        let counts = WordCounts::from_counters(&pretokenizer, counters.into()).unwrap();
        assert!(counts.iter().eq(expected));
    }
}
