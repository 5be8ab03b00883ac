//! Types and values, as they stand among the arguments of templates.

use super::parts::{Place, is_of_identifier};
use super::text::Text;

enum Token {
    Word(String),
    /// `*`, `&`, `&&`.
    Mark(&'static str),
    /// `(...)`, `[...]`.
    Group(String),
}

/// Words that say nothing of which type it is.
const WITHOUT_MEANING: [&str; 14] = [
    "class",
    "struct",
    "enum",
    "union",
    "typename",
    "__cdecl",
    "__stdcall",
    "__fastcall",
    "__thiscall",
    "__vectorcall",
    "__clrcall",
    "__regcall",
    "__ptr64",
    "__ptr32",
];

impl Text<'_> {
    /// A type or value, up to what cannot belong to it.
    pub(super) fn ty(&mut self) -> Option<String> {
        let mut tokens = Vec::new();
        loop {
            self.blanks();
            let Some(next) = self.peek() else { break };
            let token = match next {
                ',' | '>' | ')' | ']' | ';' | '\'' | '}' => break,
                '*' => self.mark("*")?,
                '&' if self.next_is("&&") => self.mark("&&")?,
                '&' => self.mark("&")?,
                '(' if !self.next_is("(anonymous ") => Token::Group(self.list('(', ')')?),
                '[' => Token::Group(self.list('[', ']')?),
                '-' if self.next_is("->") => Token::Word(self.take(2)?.to_owned()),
                '.' if self.next_is("...") => Token::Word(self.take(3)?.to_owned()),
                '+' | '=' | '!' => Token::Word(self.take(1)?.to_owned()),
                '-' | '0'..='9' => Token::Word(self.number()?),
                '"' => {
                    self.eat("\"");
                    Token::Word(format!("\"{}\"", self.take_to("\"")?))
                }
                _ => Token::Word(self.name(Place::Argument)?),
            };
            let means_nothing =
                matches!(&token, Token::Word(word) if WITHOUT_MEANING.contains(&word.as_str()));
            if !means_nothing {
                tokens.push(token);
            }
        }
        (!tokens.is_empty()).then(|| joined(tokens))
    }

    fn mark(&mut self, mark: &'static str) -> Option<Token> {
        self.eat(mark).then_some(Token::Mark(mark))
    }

    fn number(&mut self) -> Option<String> {
        let sign = if self.eat("-") { "-" } else { "" };
        let digits = self.take_while(is_of_identifier);
        // The suffix says which type it has: `16ul`.
        let plain = digits.trim_end_matches(['u', 'l', 'U', 'L']);
        let is_decimal = !plain.is_empty() && plain.bytes().all(|byte| byte.is_ascii_digit());
        (!digits.is_empty()).then(|| format!("{sign}{}", if is_decimal { plain } else { digits }))
    }

    /// Parameters, the stars of a pointer to a function, the size of an array.
    fn list(&mut self, open: char, close: char) -> Option<String> {
        self.take(open.len_utf8())?;
        let mut list = String::from(open);
        loop {
            self.blanks();
            if self.peek()? == close {
                break;
            }
            list.push_str(&self.nested(Text::ty)?);
            match self.peek()? {
                ',' => list.push_str(", "),
                ';' => list.push_str("; "),
                next if next == close => break,
                _ => return None,
            }
            self.take(1)?;
        }
        self.take(close.len_utf8())?;
        list.push(close);
        Some(if list == "(void)" { "()".to_owned() } else { list })
    }
}

/// `char const *const` reads `const char* const`.
fn joined(tokens: Vec<Token>) -> String {
    let mut text = String::new();
    let words = tokens.iter().take_while(|token| matches!(token, Token::Word(_))).count();
    let mut base = Vec::new();
    let mut qualifiers = Vec::new();
    for token in tokens.iter().take(words) {
        match token {
            Token::Word(word) if word == "const" || word == "volatile" => qualifiers.push(word.as_str()),
            Token::Word(word) => base.push(word.as_str()),
            _ => {}
        }
    }
    qualifiers.sort_unstable();
    let base = base.join(" ");
    for word in qualifiers {
        text.push_str(word);
        text.push(' ');
    }
    text.push_str(usual(&base));
    let is_call =
        ["fn", "Fn", "FnMut", "FnOnce"].iter().any(|call| base.rsplit([':', ' ']).next() == Some(call));
    let mut before = tokens.get(words.wrapping_sub(1)).filter(|_| !is_call);
    for token in tokens.iter().skip(words) {
        match token {
            Token::Mark(mark) => text.push_str(mark),
            Token::Word(word) => {
                let is_prefix = words == 0 && matches!(before, Some(Token::Mark(_)));
                if before.is_some() && !is_prefix {
                    text.push(' ');
                }
                text.push_str(word);
            }
            Token::Group(group) => {
                let follows = matches!(before, Some(Token::Word(_) | Token::Mark(_)));
                let follows_mut = matches!(before, Some(Token::Word(word)) if word == "mut");
                if follows && words > 0 && group.starts_with('(') || follows_mut {
                    text.push(' ');
                }
                text.push_str(group);
            }
        }
        before = Some(token);
    }
    text
}

/// The usual words for a type or value.
fn usual(words: &str) -> &str {
    match words {
        "__int64" | "signed __int64" | "long long int" => "long long",
        "unsigned __int64" | "long long unsigned int" | "unsigned long long int" => "unsigned long long",
        "long int" => "long",
        "long unsigned int" | "unsigned long int" => "unsigned long",
        "short int" => "short",
        "short unsigned int" | "unsigned short int" => "unsigned short",
        "unsigned" => "unsigned int",
        "__wchar_t" => "wchar_t",
        // Debug information has numbers.
        "false" => "0",
        "true" => "1",
        words => words,
    }
}
