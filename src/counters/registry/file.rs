//! Files of `reg export` and regedit: "Windows Registry Editor Version 5.00" in UTF-16 or UTF-8, and the older REGEDIT4 in
//! single bytes. Source: "How to add, modify, or delete registry subkeys and values by using a .reg file" (Microsoft).

use thiserror::Error;

use super::{Registry, Value, kind};

/// Why a file is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RegFileError {
    /// The first line is another.
    #[error("this is no file of `reg export`")]
    NotRegistry,
    /// A line says nothing that is known.
    #[error("line {line}: {what}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong.
        what: &'static str,
    },
}

impl Registry {
    /// Adds what a file says. Values of the file replace those that are there, and what it deletes is gone.
    ///
    /// # Errors
    /// The file is damaged or of another kind. What came before the damage has been added.
    pub fn read(&mut self, file: &[u8]) -> Result<(), RegFileError> {
        let text = text(file);
        let mut cursor = Cursor { rest: &text, line: 1, is_ansi: false };
        match cursor.line().trim_end() {
            "Windows Registry Editor Version 5.00" => {}
            "REGEDIT4" => cursor.is_ansi = true,
            _ => return Err(RegFileError::NotRegistry),
        }
        let mut key = None;
        loop {
            cursor.skip_blank();
            let Some(first) = cursor.rest.chars().next() else { return Ok(()) };
            match first {
                ';' => drop(cursor.line()),
                '[' => key = cursor.key(self)?,
                '"' | '@' => {
                    let name = cursor.name()?;
                    cursor.value(|value| match (&key, value) {
                        (Some(key), Some(value)) => self.set(key, &name, value),
                        (Some(key), None) => self.remove_value(key, &name),
                        (None, _) => {}
                    })?;
                }
                _ => return Err(cursor.error("neither a key nor a value")),
            }
        }
    }
}

/// UTF-16 with its mark; UTF-8; or else each byte a character.
fn text(file: &[u8]) -> String {
    match file {
        [0xff, 0xfe, units @ ..] => {
            let units = units.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
            char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        }
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        bytes => match str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
        },
    }
}

struct Cursor<'a> {
    rest: &'a str,
    line: usize,
    is_ansi: bool,
}

impl<'a> Cursor<'a> {
    fn error(&self, what: &'static str) -> RegFileError {
        RegFileError::Line { line: self.line, what }
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.line += taken.bytes().filter(|byte| *byte == b'\n').count();
        self.rest = rest;
        taken
    }

    /// The rest of the line, with its end.
    fn line(&mut self) -> &'a str {
        self.take(self.rest.find('\n').map_or(self.rest.len(), |end| end + 1))
    }

    fn skip_blank(&mut self) {
        self.take(self.rest.len() - self.rest.trim_start().len());
    }

    fn skip(&mut self, text: &str) -> bool {
        let is_there = self.rest.starts_with(text);
        if is_there {
            self.take(text.len());
        }
        is_there
    }

    /// `[HKEY_LOCAL_MACHINE\...]`: the path below it of a key that values are for; `[-...]` deletes one. A name may hold
    /// brackets, so the last one of the line is the end.
    fn key(&mut self, registry: &mut Registry) -> Result<Option<String>, RegFileError> {
        let error = self.error("a key without an end");
        let path =
            self.line().trim_end().strip_prefix('[').and_then(|path| path.strip_suffix(']')).ok_or(error)?;
        let (is_deleted, path) = match path.strip_prefix('-') {
            Some(path) => (true, path),
            None => (false, path),
        };
        let path = path.split_once('\\').filter(|(top, _)| {
            top.eq_ignore_ascii_case("HKEY_LOCAL_MACHINE") || top.eq_ignore_ascii_case("HKLM")
        });
        let Some((_, path)) = path else { return Ok(None) };
        if is_deleted {
            registry.remove(path);
            return Ok(None);
        }
        registry.add(path);
        Ok(Some(path.to_owned()))
    }

    /// The name of a value, and the `=` behind it.
    fn name(&mut self) -> Result<String, RegFileError> {
        let name = if self.skip("@") { String::new() } else { self.quoted()? };
        self.take(self.rest.len() - self.rest.trim_start_matches([' ', '\t']).len());
        if self.skip("=") { Ok(name) } else { Err(self.error("a value without =")) }
    }

    /// A text in quotation marks; it may hold ends of lines.
    fn quoted(&mut self) -> Result<String, RegFileError> {
        let error = self.error("a text without an end");
        let mut text = String::new();
        let mut letters = self.rest.char_indices().skip(1);
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => {
                    self.take(at + 1);
                    return Ok(text);
                }
                '\\' => text.extend(letters.next().map(|(_, letter)| letter)),
                letter => text.push(letter),
            }
        }
        Err(error)
    }

    /// What stands behind the `=`; `None` deletes the value.
    fn value(&mut self, found: impl FnOnce(Option<Value>)) -> Result<(), RegFileError> {
        self.take(self.rest.len() - self.rest.trim_start_matches([' ', '\t']).len());
        let value = if self.skip("-") {
            None
        } else if self.rest.starts_with('"') {
            Some(Value::text(&self.quoted()?))
        } else if self.skip("dword:") {
            let digits = self.digits();
            let number = u32::from_str_radix(digits, 16).map_err(|_| self.error("no number of 32 bits"))?;
            Some(Value::number(number))
        } else if self.skip("hex:") {
            Some(Value { kind: kind::BINARY, data: self.bytes()? })
        } else if self.skip("hex(") {
            let digits = self.digits();
            let number = u32::from_str_radix(digits, 16).map_err(|_| self.error("no type of a value"))?;
            if !self.skip("):") {
                return Err(self.error("no type of a value"));
            }
            let data = self.bytes()?;
            let is_narrow = self.is_ansi && matches!(number, kind::SZ | kind::EXPAND_SZ | kind::MULTI_SZ);
            let wide = |data: Vec<u8>| data.into_iter().flat_map(|byte| [byte, 0]).collect();
            Some(Value { kind: number, data: if is_narrow { wide(data) } else { data } })
        } else {
            return Err(self.error("no value that is known"));
        };
        found(value);
        let rest = self.line().trim();
        if rest.is_empty() || rest.starts_with(';') { Ok(()) } else { Err(self.error("more behind a value")) }
    }

    fn digits(&mut self) -> &'a str {
        let is_digit = |c: char| c.is_ascii_hexdigit();
        self.take(self.rest.find(|c| !is_digit(c)).unwrap_or(self.rest.len()))
    }

    /// Bytes with commas between; a backslash at the end of a line continues it.
    fn bytes(&mut self) -> Result<Vec<u8>, RegFileError> {
        let mut bytes = Vec::new();
        loop {
            self.take(self.rest.len() - self.rest.trim_start_matches([' ', '\t']).len());
            if self.skip("\\") {
                self.skip_blank();
                continue;
            }
            let digits = self.digits();
            if digits.is_empty() {
                return Ok(bytes);
            }
            bytes.push(u8::from_str_radix(digits, 16).map_err(|_| self.error("no byte"))?);
            if !self.skip(",") {
                return Ok(bytes);
            }
        }
    }
}
