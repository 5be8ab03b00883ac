//! The user name and password in the address of a symbol server (`https://USER:PASSWORD@host/…`).

use std::fmt;

use percent_encoding::percent_decode_str;

/// What a server is to be given when it asks who we are. Neither part is shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    server: String,
    user: String,
    password: String,
}

impl Login {
    /// The address without the login, and the login if it has one. `rest` is what follows `https://`.
    pub(super) fn split(scheme: &str, rest: &str) -> (String, Option<Login>) {
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let Some((given, host)) = host.rsplit_once('@') else {
            return (format!("{scheme}://{rest}"), None);
        };
        let server = format!("{scheme}://{host}{path}");
        let (user, password) = given.split_once(':').unwrap_or((given, ""));
        // A password with an `@` or a slash can only be given escaped.
        let plain = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
        let login = Login { server: server.clone(), user: plain(user), password: plain(password) };
        (server, Some(login))
    }

    /// The address of the server, as [`Depot::Url`](super::path::Depot::Url) has it.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The user's name; may be empty.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The password or token; may be empty. Not to be shown.
    pub fn password(&self) -> &str {
        &self.password
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("server", &self.server).finish_non_exhaustive()
    }
}
