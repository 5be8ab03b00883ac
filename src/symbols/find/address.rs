//! Addresses on servers: whose they are, and where a redirect leads.

use ureq::http::Uri;

/// Whether an address is on this server.
pub(super) fn is_of(server: &str, to: &Uri) -> bool {
    server.parse().is_ok_and(|server| same_origin(&server, to))
}

/// Whether two addresses are of the same scheme, host and port.
fn same_origin(a: &Uri, b: &Uri) -> bool {
    origin(a).is_some_and(|origin_a| origin(b).as_ref() == Some(&origin_a))
}

fn origin(uri: &Uri) -> Option<(String, String, u16)> {
    let scheme = uri.scheme_str()?.to_ascii_lowercase();
    let port = uri.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
    Some((scheme, uri.host()?.to_ascii_lowercase(), port))
}

/// The address that `location` means in an answer from `base` (RFC 3986, 5.2, without the dots); `None` if it is none on
/// a web server.
pub(super) fn redirected(base: &Uri, location: &str) -> Option<Uri> {
    let location = location.split('#').next().unwrap_or_default().trim();
    let scheme = base.scheme_str()?;
    let authority = base.authority()?;
    let path = base.path();
    let to = if is_absolute(location) {
        location.to_owned()
    } else if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else if location.starts_with('?') {
        format!("{scheme}://{authority}{path}{location}")
    } else {
        let folder = path.rfind('/').and_then(|end| path.get(..=end)).unwrap_or("/");
        format!("{scheme}://{authority}{folder}{location}")
    };
    let to: Uri = to.parse().ok()?;
    matches!(to.scheme_str()?.to_ascii_lowercase().as_str(), "http" | "https")
        .then_some(to)
        .filter(|to| to.host().is_some())
}

fn is_absolute(location: &str) -> bool {
    let scheme = location.split(['/', '?']).next().and_then(|start| start.split_once(':'));
    scheme.is_some_and(|(scheme, _)| scheme.starts_with(|c: char| c.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::{redirected, same_origin};

    #[test]
    fn where_a_redirect_leads() {
        let base = "https://a.example:8443/x/y?q=1".parse().unwrap();
        for (location, to) in [
            ("https://b.example/z", Some("https://b.example/z")),
            ("HTTP://b.example/z#part", Some("http://b.example/z")),
            ("//b.example/z", Some("https://b.example/z")),
            ("/z?r=a:b", Some("https://a.example:8443/z?r=a:b")),
            ("z", Some("https://a.example:8443/x/z")),
            ("?r", Some("https://a.example:8443/x/y?r")),
            ("z/a:b", Some("https://a.example:8443/x/z/a:b")),
            ("file:///etc/passwd", None),
            ("ftp://b.example/z", None),
            ("https://", None),
            ("mailto:me", None),
        ] {
            assert_eq!(redirected(&base, location).map(|to| to.to_string()).as_deref(), to, "{location}");
        }
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let same = |a: &str, b: &str| same_origin(&a.parse().unwrap(), &b.parse().unwrap());
        assert!(same("https://A.example/x", "https://a.example:443/y"));
        assert!(!same("https://a.example/x", "http://a.example/x"));
        assert!(!same("https://a.example/x", "https://a.example:444/x"));
        assert!(!same("https://a.example/x", "https://a.example.b/x"));
    }
}
