//! Picky BPE training: the paper's Algorithm 1, step by step (SPEC section 3).
//!
//! | paper | here |
//! |---|---|
//! | vocabulary V | `Vocabulary` |
//! | tokenized corpus C | `Corpus` |
//! | events order E | `events` |
//! | threshold T | `TrainConfig::threshold` |
//! | f_p(x1, x2) | the count that `Corpus::best_pair` returns |
//! | f_t(x) | `Corpus::frequency` |
//! | IoS(x \| x1, x2) >= T | `TrainConfig::removes` |

use crate::alphabet::{Alphabet, Unit};
use crate::corpus::{Corpus, MAX_SYMBOLS};
use crate::counts::WordCounts;
use crate::error::{Error, Result};
use crate::model::{Event, Model, Stop, TrainConfig};
use crate::pretokenize::PreTokenizer;
use crate::progress::{Progress, Stage};
use crate::vocabulary::{Symbol, Vocabulary};

/// Trains a model. The result depends on nothing but the counts and the configuration.
pub fn train(counts: &WordCounts, config: TrainConfig, progress: &Progress) -> Result<Model> {
    Trainer::new(counts, config, progress)?.train(progress)
}

/// The state of a training. It does not need the counts any more, which may be large.
#[derive(Debug)]
pub struct Trainer {
    config: TrainConfig,
    pretokenizer: PreTokenizer,
    unicode: String,
    corpus: Corpus,
    vocabulary: Vocabulary,
    events: Vec<Event>,
}

impl Trainer {
    pub fn new(counts: &WordCounts, config: TrainConfig, progress: &Progress) -> Result<Self> {
        let pretokenizer = counts.pretokenizer().clone();
        let config = config.check(&pretokenizer)?;
        if counts.is_empty() {
            return Err(Error::value("the corpus is empty: there are no words to train on"));
        }
        let alphabet = match (config.unit, config.coverage) {
            (Unit::Char, Some(coverage)) => Alphabet::covering(counts, coverage)?,
            _ => Alphabet::Bytes,
        };
        config.check_alphabet(&alphabet)?;
        let corpus = Corpus::new(counts, &alphabet, config.threshold < 1.0, progress)?;
        let vocabulary = Vocabulary::new(alphabet, config.special_tokens.clone(), config.max_token_length);
        let unicode = counts.unicode().to_owned();
        Ok(Self { config, pretokenizer, unicode, corpus, vocabulary, events: Vec::new() })
    }

    pub fn train(mut self, progress: &Progress) -> Result<Model> {
        let stop = self.run(progress)?;
        let Self { config, pretokenizer, unicode, vocabulary, events, .. } = self;
        Ok(Model::new(config, pretokenizer, unicode, vocabulary, events, stop))
    }

    fn run(&mut self, progress: &Progress) -> Result<Stop> {
        let target = self.config.vocab_size as usize;
        progress.begin(Stage::Train, target as u64);
        while self.vocabulary.size() < target {
            progress.reach(self.vocabulary.size() as u64)?;
            if self.vocabulary.symbols() >= MAX_SYMBOLS {
                return Err(Error::value(format!("training made more than {MAX_SYMBOLS} different tokens")));
            }
            let best = self.corpus.best_pair(|left, right| self.vocabulary.may_merge(left, right));
            match best {
                None => return Ok(Stop::Exhausted),
                Some((_, _, count)) if count < self.config.min_frequency => return Ok(Stop::MinFrequency),
                Some((left, right, _)) => self.step(left, right),
            }
        }
        progress.reach(target as u64)?;
        Ok(Stop::VocabSize)
    }

    /// One step of Algorithm 1: merge the pair, then remove what it absorbed.
    fn step(&mut self, left: Symbol, right: Symbol) {
        // Both removals are decided on the frequencies before the merge, so neither sees the other.
        let frequencies = (self.corpus.frequency(left), self.corpus.frequency(right));
        let (token, made) = self.vocabulary.merge(left, right);
        let count = self.corpus.merge(left, right, token);
        self.events.push(Event::Merge { left, right, token, count, made });
        if left == right {
            self.consider_removal(left, 2 * count, frequencies.0);
        } else {
            self.consider_removal(left, count, frequencies.0);
            self.consider_removal(right, count, frequencies.1);
        }
    }

    fn consider_removal(&mut self, token: Symbol, absorbed: u64, frequency: u64) {
        if self.vocabulary.is_alphabet(token) || !self.config.removes(absorbed, frequency) {
            return;
        }
        let parts = self.vocabulary.remove(token);
        self.corpus.split(token, &parts);
        self.events.push(Event::Remove { token, parts: parts.into(), absorbed, frequency });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Words over few letters make repetitions, overlaps, duplicate merges and restorations likely.
    fn corpora() -> impl Strategy<Value = Vec<(String, u64)>> {
        prop::collection::vec(("[ab]{1,12}|[a-c]{1,20}|a{1,9}", 1..30u64), 1..6)
    }

    fn counts(words: &[(String, u64)]) -> WordCounts {
        let pretokenizer = PreTokenizer::new("none").unwrap();
        WordCounts::from_words(words.iter().map(|(word, n)| (word.as_str(), *n)), &pretokenizer).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn incremental_counts_equal_recounting(words in corpora(), threshold in 0.3..1.0f64, size in 257..300u64) {
            let counts = counts(&words);
            let config = TrainConfig { vocab_size: size, threshold, ..TrainConfig::default() };
            let mut trainer = Trainer::new(&counts, config, &Progress::default()).unwrap();
            trainer.corpus.check();
            while trainer.vocabulary.size() < size as usize {
                let Some((left, right, _)) = trainer.corpus.best_pair(|_, _| true) else { break };
                trainer.step(left, right);
                trainer.corpus.check();
            }
        }

        #[test]
        fn a_model_file_replays_to_the_same_model(words in corpora(), threshold in 0.3..=1.0f64, size in 257..300u64) {
            let config = TrainConfig { vocab_size: size, threshold, ..TrainConfig::default() };
            let model = train(&counts(&words), config, &Progress::default()).unwrap();
            let read = Model::from_bytes(&model.to_bytes()).unwrap();
            prop_assert!(read == model);
            prop_assert_eq!(read.to_bytes(), model.to_bytes());
        }
    }
}
