//! Many texts at once, on several threads.
//!
//! Texts are handed out in groups, in order, and each thread writes the ids of all its groups into one buffer. With one
//! thread that buffer is the result. With more, the groups are copied to their places, on as many threads.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use crate::counts::run;
use crate::error::Result;
use crate::progress::{Progress, Stage};
use crate::tokenizer::{EncodeOptions, Tokenizer};

/// Texts are handed to threads in groups of about so many bytes.
const GROUP_BYTES: usize = 1 << 18;

/// One text of a batch: a string, or bytes that need not be one.
#[derive(Clone, Copy, Debug)]
pub enum Input<'t> {
    Text(&'t str),
    Bytes(&'t [u8]),
}

impl Input<'_> {
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Many encoded texts, end to end: text `i` is `ids[offsets[i]..offsets[i + 1]]`.
#[derive(Debug)]
pub struct Batch {
    pub ids: Vec<u32>,
    pub offsets: Vec<i64>,
}

/// What one thread encoded.
struct Share {
    ids: Vec<u32>,
    groups: Vec<Group>,
}

/// The texts of one group: their place among all, where their ids begin in the share, and how many each has.
struct Group {
    index: usize,
    start: usize,
    lengths: Vec<usize>,
}

impl Tokenizer {
    /// Encodes many texts on at most `threads` threads.
    pub fn encode_batch(
        &self,
        texts: &[Input<'_>],
        options: &EncodeOptions,
        threads: usize,
        progress: &Progress,
    ) -> Result<Batch> {
        let bytes: usize = texts.iter().map(Input::len).sum();
        progress.begin(Stage::Encode, bytes as u64);
        let groups = group(texts);
        let threads = threads.min(groups.len()).max(1);
        let next = AtomicUsize::new(0);
        let work = || -> Result<Share> {
            // Room that is not used costs nothing: it is never touched.
            let mut share = Share { ids: Vec::with_capacity(bytes / threads / 2), groups: Vec::new() };
            loop {
                let index = next.fetch_add(1, Relaxed);
                let Some(texts) = groups.get(index) else { return Ok(share) };
                let start = share.ids.len();
                let mut lengths = Vec::with_capacity(texts.len());
                self.encode_each(texts, options, progress, &mut share.ids, |length| lengths.push(length))?;
                share.groups.push(Group { index, start, lengths });
            }
        };
        let shares = run(threads, || work().inspect_err(|_| progress.stop()))?;
        Ok(join(shares, texts.len(), groups.len()))
    }

    /// Decodes many sequences of ids on at most `threads` threads.
    pub fn decode_batch(
        &self,
        batch: &[Vec<u32>],
        skip_special_tokens: bool,
        threads: usize,
        progress: &Progress,
    ) -> Result<Vec<Vec<u8>>> {
        let next = AtomicUsize::new(0);
        let groups: Vec<&[Vec<u32>]> = batch.chunks(64).collect();
        let work = || -> Result<Vec<(usize, Vec<Vec<u8>>)>> {
            let mut done = Vec::new();
            loop {
                progress.check()?;
                let index = next.fetch_add(1, Relaxed);
                let Some(group) = groups.get(index) else { return Ok(done) };
                let decoded: Result<Vec<_>> = group.iter().map(|ids| self.decode(ids, skip_special_tokens)).collect();
                done.push((index, decoded?));
            }
        };
        let threads = threads.min(groups.len());
        let mut done: Vec<_> =
            run(threads, || work().inspect_err(|_| progress.stop()))?.into_iter().flatten().collect();
        done.sort_unstable_by_key(|&(index, _)| index);
        Ok(done.into_iter().flat_map(|(_, decoded)| decoded).collect())
    }
}

/// Contiguous groups of texts, each large enough to be worth a thread's while.
fn group<'a, 't>(texts: &'a [Input<'t>]) -> Vec<&'a [Input<'t>]> {
    let mut groups = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (index, text) in texts.iter().enumerate() {
        bytes += text.len();
        if bytes >= GROUP_BYTES {
            groups.push(&texts[start..=index]);
            (start, bytes) = (index + 1, 0);
        }
    }
    if start < texts.len() {
        groups.push(&texts[start..]);
    }
    groups
}

fn join(mut shares: Vec<Share>, texts: usize, groups: usize) -> Batch {
    // By group: which share holds it, and where.
    let mut places: Vec<(usize, &[usize], usize)> = vec![(0, &[], 0); groups];
    for (share, Share { groups, .. }) in shares.iter().enumerate() {
        for group in groups {
            places[group.index] = (share, &group.lengths, group.start);
        }
    }
    let mut offsets = Vec::with_capacity(texts + 1);
    let mut end = 0;
    offsets.push(0);
    for length in places.iter().flat_map(|(_, lengths, _)| *lengths) {
        end += length;
        offsets.push(end as i64);
    }
    if shares.len() == 1 {
        return Batch { ids: std::mem::take(&mut shares[0].ids), offsets };
    }
    let mut ids = vec![0; end];
    let mut rest = ids.as_mut_slice();
    let mut copies = Vec::with_capacity(groups);
    for &(share, lengths, start) in &places {
        let (to, others) = rest.split_at_mut(lengths.iter().sum());
        let from = &shares[share].ids[start..start + to.len()];
        copies.push((to, from));
        rest = others;
    }
    let part = copies.len().div_ceil(shares.len()).max(1);
    thread::scope(|scope| {
        for copies in copies.chunks_mut(part) {
            scope.spawn(move || copies.iter_mut().for_each(|(to, from)| to.copy_from_slice(from)));
        }
    });
    Batch { ids, offsets }
}
