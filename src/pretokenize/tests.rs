//! The presets against their published patterns, and cuts against whole documents.

use super::*;

const GPT2: &str = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const GPT4: &str = concat!(
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
);
const GPT4O: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
const PATTERNS: [(&str, &str); 3] = [("gpt2", GPT2), ("gpt4", GPT4), ("gpt4o", GPT4O)];

fn words<'t>(splitter: &mut Splitter, text: &'t str) -> Vec<&'t str> {
    let mut words = Vec::new();
    splitter.split(text, |word| words.push(word)).unwrap();
    words
}

fn split<'t>(name: &str, text: &'t str) -> Vec<&'t str> {
    words(&mut PreTokenizer::new(name).unwrap().splitter(), text)
}

/// Calls `check` with every string of up to `length` of these characters.
fn for_all_strings(alphabet: &[char], length: usize, check: &mut impl FnMut(&str)) {
    fn extend(text: &mut String, alphabet: &[char], length: usize, check: &mut impl FnMut(&str)) {
        check(text);
        if length > 0 {
            for &char in alphabet {
                text.push(char);
                extend(text, alphabet, length - 1, check);
                text.pop();
            }
        }
    }
    extend(&mut String::new(), alphabet, length, check);
}

#[test]
fn examples() {
    assert_eq!(split("gpt2", "I'll pay  £20,\n\n OK?"), ["I", "'ll", " pay", " ", " £", "20", ",", "\n\n", " OK", "?"]);
    assert_eq!(split("gpt4", "It'S 12345 km.\n\n  Yes"), ["It", "'S", " ", "123", "45", " km", ".\n\n", " ", " Yes"]);
    assert_eq!(split("gpt4o", "HTTPServer's camelCase"), ["HTTPServer's", " camel", "Case"]);
    assert_eq!(split("whitespace", " a\u{1c}b\u{3000}c▁d \n"), ["a", "b", "c▁d"]);
    assert_eq!(split("none", "all of it"), ["all of it"]);
    for name in NAMES {
        assert_eq!(split(name, ""), [""; 0], "{name}");
    }
}

#[test]
fn presets_equal_their_patterns() {
    let alphabet = ['a', 'T', 's', 'ſ', 'ª', '\u{301}', '1', '٣', '\'', '/', '!', ' ', '\u{a0}', '\r', '\n'];
    for (name, pattern) in PATTERNS {
        let mut preset = PreTokenizer::new(name).unwrap().splitter();
        let mut published = PreTokenizer::new(&format!("regex:{pattern}")).unwrap().splitter();
        for_all_strings(&alphabet, 4, &mut |text| {
            assert_eq!(words(&mut preset, text), words(&mut published, text), "{name} {text:?}");
        });
    }
}

#[test]
fn chunks_of_eight_change_nothing() {
    for (name, pattern) in PATTERNS {
        let mut preset = PreTokenizer::new(name).unwrap().splitter();
        let mut published = PreTokenizer::new(&format!("regex:{pattern}")).unwrap().splitter();
        for length in 0..20 {
            for end in ["", "é", "éa", "\u{301}b", "Z", "@", "[", "`", "{", "0", " ", "'s", "\u{80}"] {
                let text = format!("x{}{end}{}", "az".repeat(length), "ZA".repeat(length));
                assert_eq!(words(&mut preset, &text), words(&mut published, &text), "{name} {text:?}");
            }
        }
    }
}

#[test]
fn cuts_change_no_word() {
    let alphabet = ['a', 'T', 's', 'ª', '\u{301}', '1', '\'', '。', ' ', '\n'];
    for name in ["gpt2", "gpt4", "gpt4o", "whitespace"] {
        let pre = PreTokenizer::new(name).unwrap();
        let mut splitter = pre.splitter();
        for_all_strings(&alphabet, 5, &mut |text| {
            let whole = words(&mut splitter, text);
            for length in 0..=text.len() {
                let Some(cut) = pre.cut(&text.as_bytes()[..length]) else { continue };
                assert!(0 < cut && cut < length);
                let mut parts = words(&mut splitter, &text[..cut]);
                parts.extend(words(&mut splitter, &text[cut..]));
                assert_eq!(parts, whole, "{name} {text:?} cut at {cut}");
            }
        });
    }
}

#[test]
fn cuts_are_found() {
    let cut = |name: &str, block: &[u8]| PreTokenizer::new(name).unwrap().cut(block);
    for name in ["gpt2", "gpt4", "gpt4o"] {
        assert_eq!(cut(name, b"one two three"), Some(7));
        assert_eq!(cut(name, "世界。今天".as_bytes()), Some(6));
        assert_eq!(cut(name, b"a) b"), Some(2));
        assert_eq!(cut(name, b"one"), None);
        assert_eq!(cut(name, b"one "), Some(3));
        assert_eq!(cut(name, b" one"), None);
        assert_eq!(cut(name, b"\xe4\xb8 \xff "), None);
        assert_eq!(cut(name, b"a b\xff c"), Some(1));
        assert_eq!(cut(name, b"a b\xc3"), Some(1));
    }
    assert_eq!(cut("whitespace", b"one\x1ftwo"), Some(3));
    assert_eq!(cut("none", b"one two"), None);
    assert_eq!(cut("regex: ", b"one two"), None);
}

#[test]
fn repeated_characters_take_linear_time() {
    let start = std::time::Instant::now();
    for name in NAMES {
        let mut splitter = PreTokenizer::new(name).unwrap().splitter();
        for unit in [" ", "\n", "\n ", "a", "A", "ª", "ªA", "\u{301}A", "'", "/", "!", "1", "é", "!\n", "\u{3000}"] {
            let text = unit.repeat(200_000);
            for text in [text.clone(), text.clone() + "x", text + "'"] {
                assert!(words(&mut splitter, &text).len() <= text.len());
            }
        }
    }
    // Quadratic time would be hours.
    assert!(start.elapsed().as_secs() < 60);
}

#[test]
fn names() {
    for name in NAMES.into_iter().chain(["regex: ?\\w+"]) {
        let pre = PreTokenizer::new(name).unwrap();
        assert_eq!(pre.name(), name);
        assert_eq!(pre, PreTokenizer::new(name).unwrap());
        assert_eq!(pre.is_partition(), name != "whitespace");
        assert_eq!(pre.prefix(), if name == "whitespace" { "▁" } else { "" });
    }
    assert_ne!(PreTokenizer::new("gpt2").unwrap(), PreTokenizer::new("gpt4").unwrap());
    for name in ["", "GPT4", "regex", "gpt3"] {
        let message = PreTokenizer::new(name).unwrap_err().to_string();
        assert!(message.contains(&format!("{name:?}")) && message.contains("gpt4o, gpt2"), "{message}");
    }
}
