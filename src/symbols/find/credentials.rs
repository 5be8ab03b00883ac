//! What lets us in at symbol servers: headers for one host, and the logins of a netrc file.
//!
//! They go to the server that a symbol path names, and to no host that it redirects to.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::{env, fmt};

/// The longest netrc file that is read, in bytes.
const MAX_NETRC: u64 = 1 << 20;

/// Headers and logins by host. `Debug` shows the hosts alone.
#[derive(Clone, Default)]
pub struct Credentials {
    headers: Vec<Header>,
    logins: Vec<HostLogin>,
}

#[derive(Clone)]
#[cfg_attr(not(feature = "http"), allow(dead_code))]
struct Header {
    /// With a port if it is for that one only.
    host: String,
    name: String,
    value: String,
}

#[derive(Clone)]
#[cfg_attr(not(feature = "http"), allow(dead_code))]
struct HostLogin {
    host: String,
    user: String,
    password: String,
}

impl Credentials {
    /// Adds a header for one host from `HOST=NAME: VALUE`, where a host may have a port.
    ///
    /// # Errors
    /// What is wrong with it. The text is not in the answer, as it may be secret.
    pub fn add_header(&mut self, text: &str) -> Result<(), &'static str> {
        const FORM: &str =
            "expected HOST=NAME: VALUE, such as symbols.example.com=Authorization: Bearer TOKEN";
        let (host, header) = text.split_once('=').ok_or(FORM)?;
        let (name, value) = header.split_once(':').ok_or(FORM)?;
        let (host, name, value) = (host.trim(), name.trim(), value.trim());
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if host.is_empty() || host.contains(['/', '@', ' ']) {
            return Err("the host must be a name such as symbols.example.com, without https:// and a path");
        }
        if name.is_empty() || !name.chars().all(is_token) {
            return Err(FORM);
        }
        if !value.chars().all(|c| c.is_ascii() && !c.is_ascii_control()) {
            return Err("the value of the header has characters that a header cannot have");
        }
        let [host, name, value] = [host, name, value].map(str::to_owned);
        self.headers.push(Header { host, name, value });
        Ok(())
    }

    /// Adds the logins of a netrc file for named hosts. `default` is left out: it would go to every server.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub fn read_netrc(&mut self, file: &Path) -> io::Result<()> {
        let mut text = Vec::new();
        match File::open(file) {
            Ok(file) => file.take(MAX_NETRC).read_to_end(&mut text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        self.logins.extend(netrc(&String::from_utf8_lossy(&text)));
        Ok(())
    }
}

#[cfg(feature = "http")]
impl Credentials {
    /// The headers for requests to an address.
    pub(super) fn headers(&self, to: &ureq::http::Uri) -> Vec<(String, String)> {
        let Some(host) = to.host() else { return Vec::new() };
        let port = to.port_u16().unwrap_or(if to.scheme_str() == Some("https") { 443 } else { 80 });
        let with_port = format!("{host}:{port}");
        let is_for = |header: &&Header| {
            header.host.eq_ignore_ascii_case(host) || header.host.eq_ignore_ascii_case(&with_port)
        };
        self.headers.iter().filter(is_for).map(|header| (header.name.clone(), header.value.clone())).collect()
    }

    /// The user and the password for requests to an address.
    pub(super) fn login(&self, to: &ureq::http::Uri) -> Option<(&str, &str)> {
        let host = to.host()?;
        let login = self.logins.iter().find(|login| login.host.eq_ignore_ascii_case(host))?;
        Some((&login.user, &login.password))
    }
}

/// The value of a header that logs in with a password (RFC 7617).
#[cfg(feature = "http")]
pub(super) fn basic(user: &str, password: &str) -> String {
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    format!("Basic {text}")
}

/// The netrc file of this user: `NETRC`, or `.netrc` in the home folder, on Windows also `_netrc`. `None` when there is no
/// such file and none is named.
pub fn netrc_file() -> Option<PathBuf> {
    if let Some(named) = env::var_os("NETRC").filter(|name| !name.is_empty()) {
        return Some(named.into());
    }
    let home = etcetera::home_dir().ok()?;
    let names: &[&str] = if cfg!(windows) { &["_netrc", ".netrc"] } else { &[".netrc"] };
    names.iter().map(|name| home.join(name)).find(|file| file.is_file())
}

/// The logins of a netrc file: words, of which `machine` begins an entry. A macro ends with an empty line.
fn netrc(text: &str) -> Vec<HostLogin> {
    let (mut logins, mut in_macro) = (Vec::new(), false);
    let mut words = Vec::new();
    for line in text.lines() {
        in_macro &= !line.trim().is_empty();
        if in_macro || line.trim_start().starts_with('#') {
            continue;
        }
        let before = words.len();
        words.extend(words_of(line));
        if let Some(at) = words.iter().skip(before).position(|word| word == "macdef") {
            words.truncate(before + at);
            in_macro = true;
        }
    }
    let mut words = words.into_iter();
    // `None` in the entry `default`.
    let mut entry: Option<HostLogin> = None;
    while let Some(word) = words.next() {
        match word.as_str() {
            "machine" | "default" => {
                logins.extend(entry.take());
                let host = if word == "machine" { words.next() } else { None };
                entry = host.map(|host| HostLogin { host, user: String::new(), password: String::new() });
            }
            "login" | "password" | "account" => {
                let value = words.next().unwrap_or_default();
                match (&mut entry, word.as_str()) {
                    (Some(entry), "login") => entry.user = value,
                    (Some(entry), "password") => entry.password = value,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    logins.extend(entry);
    logins
}

/// The words of a line. One in quotes may have blanks, and `\` before a quote.
fn words_of(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let (mut word, mut end, mut escaped) = (String::new(), rest.len(), false);
        let quoted = first == '"';
        for (at, c) in rest.char_indices().skip(usize::from(quoted)) {
            if escaped || c != '\\' || !quoted {
                if !escaped && (quoted && c == '"' || !quoted && c.is_whitespace()) {
                    end = at + c.len_utf8();
                    break;
                }
                word.push(c);
                escaped = false;
            } else {
                escaped = true;
            }
        }
        words.push(word);
        rest = rest.get(end..).unwrap_or_default().trim_start();
    }
    words
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers = self.headers.iter().map(|header| &header.host);
        f.debug_set().entries(headers.chain(self.logins.iter().map(|login| &login.host))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{Credentials, netrc};

    #[test]
    fn a_netrc_file_has_words_in_any_layout() {
        let text = "# comment machine no login no\nmachine a.example login me password \"my \\\"word\\\" x\"\n\
             macdef init\nmachine no login no\n\nmachine b.example\n\taccount z\n\tpassword p#1\n\tlogin you\n\
             default login anybody password anything\nmachine c.example login alone";
        let logins: Vec<_> =
            netrc(text).into_iter().map(|login| (login.host, login.user, login.password)).collect();
        let expected =
            [("a.example", "me", "my \"word\" x"), ("b.example", "you", "p#1"), ("c.example", "alone", "")];
        let expected = expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()));
        assert_eq!(logins, expected);
    }

    #[test]
    fn what_is_no_header_is_refused_without_showing_it() {
        let mut credentials = Credentials::default();
        for text in [
            "secret",
            "host=secret",
            "=X: secret",
            "https://host=X: secret",
            "host=: secret",
            "host=a b: secret",
            "host=X: sec\nret",
            "host=X: secr\u{e9}t",
        ] {
            let why = credentials.add_header(text).unwrap_err();
            assert!(!why.contains("sec"), "{why}");
        }
        credentials.add_header("host:8=X-Token: se=cr:et").unwrap();
        assert_eq!(format!("{credentials:?}"), "{\"host:8\"}");
    }

    #[cfg(feature = "http")]
    #[test]
    fn a_host_without_a_port_is_that_host_at_any_port() {
        let mut credentials = Credentials::default();
        credentials.add_header("a.example=X: 1").unwrap();
        credentials.add_header("A.example:443=Y: 2").unwrap();
        let names = |to: &str| {
            let headers = credentials.headers(&to.parse().unwrap());
            headers.into_iter().map(|(name, _)| name).collect::<String>()
        };
        assert_eq!(names("https://a.example/x"), "XY");
        assert_eq!(names("http://A.EXAMPLE:8080/x"), "X");
        assert_eq!(names("https://b.a.example/x"), "");
    }
}
