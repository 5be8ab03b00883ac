//! A symbol server: which addresses to ask for a file, and when to stop asking.
//!
//! Below the server's address a file is asked for as `name/index/name`, then compressed as `name/index/nam_`, then
//! as `name/index/file.ptr`, a text that says where the file lies. A server with a file `index2.txt` in its root has
//! two tiers, and all this below the first two letters of the name.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::{Mutex, OnceLock, PoisonError};

use percent_encoding::utf8_percent_encode;

use super::budget::Budget;
use super::cache::first_tier;
use super::download::{Client, not_stored};
use super::health::{Call, Health};
use super::key::FileKey;
use super::lookup::{Outcome, Place};
use super::options::StoreOptions;
use crate::symbols::url::UNRESERVED;

/// The longest `file.ptr` and `index2.txt` that are read, in bytes.
pub(super) const MAX_TEXT: u64 = 64 * 1024;

/// One symbol server in one run.
pub(super) struct Server {
    base: String,
    /// Found out at the first file that is not there.
    two_tier: OnceLock<bool>,
    /// By one search for all.
    finding_out: Mutex<()>,
    health: Health,
}

/// The place asked last, and what came of it.
pub(super) type Answer = (Place, Result<(), Outcome>);

/// What a `file.ptr` says.
pub(super) enum Pointer<'a> {
    /// The file lies there: a path or an address.
    File(&'a str),
    /// A text for the user: there is none.
    Message(&'a str),
}

impl Server {
    pub(super) fn new(base: String, options: &StoreOptions) -> Server {
        Server {
            base,
            two_tier: OnceLock::new(),
            finding_out: Mutex::default(),
            health: Health::new(options.pause, options.outage),
        }
    }

    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// The address of the file itself.
    pub(super) fn url(&self, name: &str, index: &str) -> String {
        self.url_of(self.two_tier.get() == Some(&true), name, index, name)
    }

    fn url_of(&self, two_tier: bool, name: &str, index: &str, file: &str) -> String {
        let tier = if two_tier { escape(&first_tier(name)) + "/" } else { String::new() };
        format!("{}/{tier}{}/{index}/{}", self.base, escape(name), escape(file))
    }

    /// Gets the file, possibly compressed, into `file`.
    pub(super) fn fetch(
        &self,
        client: &Client,
        budget: &Budget,
        (name, index): (&str, &str),
        file: &mut File,
        limit: u64,
        arrived: &mut dyn FnMut(u64, Option<u64>),
    ) -> Answer {
        if let Some(outcome) = self.health.given_up() {
            return (Place::Url(self.base.clone()), Err(outcome));
        }
        let call = Call { budget, health: &self.health, server: &self.base, file: name };
        let mut get = |url: &str, file: &mut File| client.get(url, file, limit, &call, arrived).map(drop);
        let two_tier = self.two_tier.get() == Some(&true);
        let mut answer = self.fetch_in(two_tier, name, index, file, &mut get);
        if answer.1 == Err(Outcome::NotThere) && !two_tier {
            match self
                .has_two_tiers(&mut |url| client.get(url, file, MAX_TEXT, &call, &mut |_, _| ()).map(drop))
            {
                Ok(true) => answer = self.fetch_in(true, name, index, file, &mut get),
                Ok(false) => {}
                // Where the file would be is not known.
                Err(trouble) => answer.1 = Err(trouble),
            }
        }
        self.health.judge(budget, answer.1.as_ref().err());
        answer
    }

    /// Found out once. What is no answer to that is returned, and the next file asks again.
    fn has_two_tiers(&self, get: &mut dyn FnMut(&str) -> Result<(), Outcome>) -> Result<bool, Outcome> {
        let _one = self.finding_out.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = self.two_tier.get() {
            return Ok(*known);
        }
        let is_there = match get(&format!("{}/index2.txt", self.base)) {
            Ok(()) => true,
            Err(Outcome::NotThere | Outcome::Forbidden(_) | Outcome::WebPage | Outcome::OverLimit { .. }) => {
                false
            }
            Err(trouble) => return Err(trouble),
        };
        Ok(*self.two_tier.get_or_init(|| is_there))
    }

    fn fetch_in(
        &self,
        two_tier: bool,
        name: &str,
        index: &str,
        file: &mut File,
        get: &mut dyn FnMut(&str, &mut File) -> Result<(), Outcome>,
    ) -> Answer {
        let plain = self.url_of(two_tier, name, index, name);
        // Some servers deny what they do not have.
        let mut missing = Outcome::NotThere;
        for form in [name, &FileKey::compressed(name), "file.ptr"] {
            let url = self.url_of(two_tier, name, index, form);
            match get(&url, file) {
                Ok(()) if form == "file.ptr" => {
                    let (to, result) = self.follow(file, get);
                    return (Place::Url(to.unwrap_or(url)), result);
                }
                Err(Outcome::NotThere) => {}
                Err(Outcome::Forbidden(Some(403))) => missing = Outcome::Forbidden(Some(403)),
                other => return (Place::Url(url), other),
            }
        }
        (Place::Url(plain), Err(missing))
    }

    fn follow(
        &self,
        file: &mut File,
        get: &mut dyn FnMut(&str, &mut File) -> Result<(), Outcome>,
    ) -> (Option<String>, Result<(), Outcome>) {
        let text = match read_text(file) {
            Ok(text) => text,
            Err(outcome) => return (None, Err(outcome)),
        };
        match Pointer::read(&text) {
            Pointer::Message(text) => {
                (None, Err(Outcome::Unreadable(format!("the server says instead: {text}"))))
            }
            // A server must not make this machine open a path, which on Windows can mean to log in elsewhere.
            Pointer::File(to) if !to.starts_with("https://") && !to.starts_with("http://") => {
                (None, Err(Outcome::RefusedPath("the server's file.ptr names a path, not an address")))
            }
            Pointer::File(to) if self.base.starts_with("https:") && to.starts_with("http:") => {
                (None, Err(Outcome::BadRedirect(format!("file.ptr leads from https to {to}"))))
            }
            Pointer::File(to) => (Some(to.to_owned()), get(to, file)),
        }
    }
}

impl Pointer<'_> {
    /// The text is `PATH:…`, `MSG: …`, or the path alone.
    pub(super) fn read(text: &str) -> Pointer<'_> {
        let text = text.trim_start_matches('\u{feff}').trim();
        let after = |prefix: &str| {
            text.get(..prefix.len())
                .filter(|start| start.eq_ignore_ascii_case(prefix))
                .and_then(|_| text.get(prefix.len()..))
                .map(str::trim)
        };
        match (after("MSG:"), after("PATH:")) {
            (Some(message), _) => Pointer::Message(message),
            (_, Some(path)) => Pointer::File(path),
            _ => Pointer::File(text),
        }
    }
}

/// The text of a small file from its beginning.
pub(super) fn read_text(file: &mut File) -> Result<String, Outcome> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).map_err(not_stored)?;
    file.take(MAX_TEXT).read_to_end(&mut bytes).map_err(not_stored)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Percent-encodes one part of a path.
fn escape(part: &str) -> String {
    utf8_percent_encode(part, UNRESERVED).to_string()
}
