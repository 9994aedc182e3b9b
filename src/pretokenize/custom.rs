//! Custom patterns: which engine runs a pattern, and how its matches become words.
//!
//! `regex-automata` runs every pattern that it can, in time linear in the text for each search; `fancy-regex` runs
//! those with look-around, back references or possessive repeats, by backtracking, and may give up on a text.
//! Both read one syntax, with the same meaning, but for one thing: `a++` is possessive in `fancy-regex`, while
//! `regex-automata` would read it as `(a+)+`. The published patterns mean the first, so such patterns go to
//! `fancy-regex` even though the other engine would take them.

use regex_automata::Input;
use regex_automata::meta::{BuildError, Cache, Regex};
use regex_syntax::ast::{self, Ast, Visitor};

use crate::error::{Error, Result};

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(super) enum Pattern {
    Automata(Regex),
    Fancy(fancy_regex::Regex),
}

/// A pattern with memory of its own, for one thread.
#[derive(Debug)]
pub(super) enum Matcher {
    Automata(Regex, Box<Cache>),
    Fancy(fancy_regex::Regex),
}

impl Pattern {
    pub(super) fn new(pattern: &str) -> Result<Self> {
        if pattern.is_empty() {
            return Err(Error::value("pre-tokenizer \"regex:\" has an empty pattern"));
        }
        let refuse = |reason: String| Error::value(format!("pre-tokenizer \"regex:{pattern}\": {reason}"));
        match Regex::new(pattern) {
            Ok(regex) if !has_stacked_repeats(pattern) => return Ok(Self::Automata(regex)),
            Err(error) if !needs_fancy(&error) => return Err(refuse(explain(&error))),
            _ => (),
        }
        match fancy_regex::Regex::new(pattern) {
            Ok(regex) => Ok(Self::Fancy(regex)),
            Err(error) => Err(refuse(explain_fancy(&error))),
        }
    }

    pub(super) fn matcher(&self) -> Matcher {
        match self {
            Self::Automata(regex) => Matcher::Automata(regex.clone(), Box::new(regex.create_cache())),
            // A clone would share its scratch memory, and a lock around it, so each thread compiles its own.
            Self::Fancy(regex) => {
                let own = fancy_regex::Regex::new(regex.as_str()).expect("the pattern compiled before");
                Matcher::Fancy(own)
            }
        }
    }
}

impl Matcher {
    /// Words are the non-empty matches and the text between them. After an empty match the search goes on one
    /// character later, as in Rust's `find_iter`.
    pub(super) fn split<'t>(&mut self, text: &'t str, mut word: impl FnMut(&'t str)) -> Result<()> {
        let mut from = 0;
        let mut done = 0;
        while let Some((start, end)) = self.find(text, from)? {
            // `\K` can move a start before the last match or behind its own end.
            let start = start.max(done);
            if start >= end {
                let Some(char) = text[end..].chars().next() else { break };
                from = end + char.len_utf8();
                continue;
            }
            if done < start {
                word(&text[done..start]);
            }
            word(&text[start..end]);
            (from, done) = (end, end);
        }
        if done < text.len() {
            word(&text[done..]);
        }
        Ok(())
    }

    fn find(&mut self, text: &str, from: usize) -> Result<Option<(usize, usize)>> {
        match self {
            Self::Automata(regex, cache) => {
                let found = regex.search_with(cache, &Input::new(text).range(from..));
                Ok(found.map(|found| (found.start(), found.end())))
            }
            Self::Fancy(regex) => match regex.find_from_pos(text, from) {
                Ok(found) => Ok(found.map(|found| (found.start(), found.end()))),
                Err(error) => Err(Error::value(format!(
                    "pattern {:?} failed on a document of {} bytes, at byte {from}: {}",
                    regex.as_str(),
                    text.len(),
                    explain_fancy(&error)
                ))),
            },
        }
    }
}

/// Whether `regex-automata` refused something that `fancy-regex` may know: look-around, `\1`, `(?>a)`, `\K`.
fn needs_fancy(error: &BuildError) -> bool {
    use ast::ErrorKind::{EscapeUnrecognized, FlagUnrecognized, UnsupportedBackreference, UnsupportedLookAround};
    let Some(regex_syntax::Error::Parse(error)) = error.syntax_error() else { return false };
    matches!(error.kind(), UnsupportedLookAround | UnsupportedBackreference | FlagUnrecognized | EscapeUnrecognized)
}

/// The engine's message, on one line; its own has several, with a drawing of the pattern.
fn explain(error: &BuildError) -> String {
    match error.syntax_error() {
        Some(regex_syntax::Error::Parse(error)) => {
            format!("{} at character {}", error.kind(), error.span().start.column)
        }
        Some(regex_syntax::Error::Translate(error)) => {
            format!("{} at character {}", error.kind(), error.span().start.column)
        }
        _ => match error.size_limit() {
            Some(limit) => format!("the compiled pattern is larger than {limit} bytes"),
            None => error.to_string(),
        },
    }
}

fn explain_fancy(error: &fancy_regex::Error) -> String {
    match error {
        fancy_regex::Error::CompileError(compile) => match &**compile {
            fancy_regex::CompileError::InnerError(error) => explain(error),
            other => other.to_string(),
        },
        other => other.to_string(),
    }
}

/// Whether `regex-syntax` reads a repeat of a repeat, such as `a++`.
fn has_stacked_repeats(pattern: &str) -> bool {
    struct Finder(bool);
    impl Visitor for Finder {
        type Output = bool;
        type Err = ();
        fn finish(self) -> std::result::Result<bool, ()> {
            Ok(self.0)
        }
        fn visit_pre(&mut self, ast: &Ast) -> std::result::Result<(), ()> {
            if let Ast::Repetition(repeat) = ast {
                self.0 |= matches!(*repeat.ast, Ast::Repetition(_));
            }
            Ok(())
        }
    }
    ast::parse::Parser::new().parse(pattern).is_ok_and(|ast| ast::visit(&ast, Finder(false)) == Ok(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(pattern: &str, text: &str) -> Vec<String> {
        let mut words = Vec::new();
        Pattern::new(pattern).unwrap().matcher().split(text, |word| words.push(word.to_owned())).unwrap();
        words
    }

    #[test]
    fn matches_and_what_is_between() {
        assert_eq!(words(r"\d+", "ab12cd3"), ["ab", "12", "cd", "3"]);
        assert_eq!(words(r"\d+", "abc"), ["abc"]);
        assert_eq!(words(r"\d+", ""), [""; 0]);
    }

    #[test]
    fn empty_matches_cut_nothing() {
        assert_eq!(words("a*", "bxaacé"), ["bx", "aa", "cé"]);
        assert_eq!(words(r"\b", "one two"), ["one two"]);
        assert_eq!(words("(?=é)", "aéé"), ["aéé"]);
    }

    #[test]
    fn moved_starts_are_no_trouble() {
        assert_eq!(words(r"a\Kb", "aab"), ["aa", "b"]);
        assert_eq!(words(r"(?=ab\K)", "xabé"), ["xabé"]);
        assert_eq!(words(r"(?=aé\K)a|é", "aéé"), ["aé", "é"]);
        assert_eq!(words(r"b|(?<=\Kb)a", "xba"), ["x", "b", "a"]);
    }

    #[test]
    fn each_pattern_has_its_engine() {
        for pattern in [r"\w+|\s", r"(?:a+)+", r"\bé{2}", r"[+*]{2}", "a{2}?"] {
            assert!(matches!(Pattern::new(pattern).unwrap(), Pattern::Automata(_)), "{pattern}");
        }
        for pattern in [r"\s+(?!\S)", r"(a)\1", "a++", "(?>a|ab)c", "a{1,3}+"] {
            assert!(matches!(Pattern::new(pattern).unwrap(), Pattern::Fancy(_)), "{pattern}");
        }
        // Possessive, so the last `a` is never given back.
        assert_eq!(words("a++a|b", "aaab"), ["aaa", "b"]);
        assert_eq!(words("a?+b", "aab"), ["a", "ab"]);
    }

    #[test]
    fn broken_patterns_are_explained() {
        let long = r"(?:\p{L}{99}){99}";
        for pattern in [long, "", "(", "[a", r"\p{Nope}", "a{2,1}", "*", "(?=(", r"\2"] {
            let message = Pattern::new(pattern).unwrap_err().to_string();
            assert!(message.contains(&format!("\"regex:{pattern}")) && !message.contains('\n'), "{message}");
        }
    }

    #[test]
    fn a_search_that_gives_up_is_an_error() {
        let mut matcher = Pattern::new(r"(?:a|a)*(?=b)c").unwrap().matcher();
        let message = matcher.split(&"a".repeat(100), |_| ()).unwrap_err().to_string();
        assert!(message.contains("backtracking"), "{message}");
    }
}
