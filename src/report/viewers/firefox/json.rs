//! JSON, written piece by piece.

use std::fmt::{self, Display};
use std::io::{self, Write};

use crate::report::text::json_element;

/// Writes one value after another, and the commas between them.
pub(super) struct Json<W> {
    out: W,
    /// A value stands before the next one.
    comma: bool,
}

impl<W: Write> Json<W> {
    pub(super) fn new(out: W) -> Json<W> {
        Json { out, comma: false }
    }

    /// What was written to.
    pub(super) fn into_inner(self) -> W {
        self.out
    }

    pub(super) fn object(&mut self, write: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        self.enclosed(b"{", write, b"}")
    }

    pub(super) fn array(&mut self, write: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        self.enclosed(b"[", write, b"]")
    }

    /// The name of the next value of an object.
    pub(super) fn key(&mut self, name: &str) -> io::Result<&mut Self> {
        self.separate()?;
        write!(self.out, "\"{name}\":")?;
        self.comma = false;
        Ok(self)
    }

    /// A number, `true`, `false` or `null`.
    pub(super) fn plain(&mut self, value: impl Display) -> io::Result<()> {
        self.separate()?;
        write!(self.out, "{value}")
    }

    /// A string. It may come from a file, and hold anything.
    pub(super) fn text(&mut self, text: &str) -> io::Result<()> {
        self.separate()?;
        json_element(&mut self.out, &text)
    }

    /// An array of [plain](Json::plain) values.
    pub(super) fn column<T: Display>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = T>,
    ) -> io::Result<()> {
        self.key(name)?.array(|json| values.into_iter().try_for_each(|value| json.plain(value)))
    }

    fn enclosed(
        &mut self,
        open: &[u8],
        write: impl FnOnce(&mut Self) -> io::Result<()>,
        close: &[u8],
    ) -> io::Result<()> {
        self.separate()?;
        self.comma = false;
        self.out.write_all(open)?;
        write(self)?;
        self.comma = true;
        self.out.write_all(close)
    }

    fn separate(&mut self) -> io::Result<()> {
        if self.comma {
            self.out.write_all(b",")?;
        }
        self.comma = true;
        Ok(())
    }
}

/// `null` for nothing.
pub(super) struct OrNull<T>(pub(super) Option<T>);

impl<T: Display> Display for OrNull<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("null"),
        }
    }
}

/// Time in 100 ns, written in milliseconds without a loss.
#[derive(Clone, Copy)]
pub(super) struct Milliseconds(pub(super) i64);

impl Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, rest) = (self.0.unsigned_abs() / 10_000, self.0.unsigned_abs() % 10_000);
        if rest == 0 {
            return write!(f, "{sign}{whole}");
        }
        let rest = format!("{rest:04}");
        write!(f, "{sign}{whole}.{}", rest.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::{Json, Milliseconds, OrNull};

    #[test]
    fn commas_stand_between_values() {
        let mut json = Json::new(Vec::new());
        json.object(|json| {
            json.key("a")?.plain(1)?;
            json.key("b")?.array(|json| {
                json.object(|_| Ok(()))?;
                json.array(|json| json.text("x\"\u{1}\u{202e}"))?;
                json.plain(OrNull::<u32>(None))
            })?;
            json.column("c", [OrNull(Some(2)), OrNull(None)])?;
            json.column("d", [0u8; 0])
        })
        .unwrap();
        let text = String::from_utf8(json.into_inner()).unwrap();
        assert_eq!(text, r#"{"a":1,"b":[{},["x\"\u0001\u202e"],null],"c":[2,null],"d":[]}"#);
    }

    #[test]
    fn milliseconds_lose_nothing() {
        for (value, text) in
            [(0, "0"), (10_000, "1"), (9_977, "0.9977"), (12_500, "1.25"), (-1, "-0.0001"), (100, "0.01")]
        {
            assert_eq!(Milliseconds(value).to_string(), text);
        }
    }
}
