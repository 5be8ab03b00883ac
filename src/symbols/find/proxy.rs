//! By way of which proxy an address is reached.

use ureq::http::Uri;

use super::options::Proxy;
#[cfg(windows)]
use super::system_proxy::SystemProxies;

/// The proxies of a run.
#[derive(Default)]
pub(super) struct Proxies {
    /// Or why there is none for these addresses.
    http: Option<Result<ureq::Proxy, String>>,
    https: Option<Result<ureq::Proxy, String>>,
    direct: Exempt,
    /// For what no variable says.
    #[cfg(windows)]
    system: Option<SystemProxies>,
}

/// Hosts that are reached directly.
#[derive(Default)]
struct Exempt {
    all: bool,
    /// Each with all hosts below it.
    hosts: Vec<String>,
}

impl Proxies {
    pub(super) fn new(option: &Proxy, variable: &dyn Fn(&str) -> Option<String>) -> Proxies {
        match option {
            Proxy::Direct => Proxies::default(),
            Proxy::Address(address) => {
                let proxy = parse("the proxy", address);
                Proxies { http: Some(proxy.clone()), https: Some(proxy), ..Proxies::default() }
            }
            Proxy::Environment => {
                let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
                let first = |own: [&str; 2]| {
                    // Microsoft's tools know the first, curl the others.
                    let names = ["_NT_SYMBOL_PROXY", own[0], own[1], "all_proxy", "ALL_PROXY"];
                    names.into_iter().find_map(|name| Some(parse(name, set(name)?.trim())))
                };
                let direct = set("no_proxy").or_else(|| set("NO_PROXY")).unwrap_or_default();
                Proxies {
                    http: first(["http_proxy", "HTTP_PROXY"]),
                    https: first(["https_proxy", "HTTPS_PROXY"]),
                    direct: Exempt::parse(&direct),
                    #[cfg(windows)]
                    system: Some(SystemProxies::default()),
                }
            }
        }
    }

    /// The proxy for an address; `None` for a server that is reached directly.
    ///
    /// # Errors
    /// The address of the proxy cannot be used.
    pub(super) fn of(&self, to: &Uri) -> Result<Option<ureq::Proxy>, String> {
        let host = to.host().unwrap_or_default();
        if self.direct.has(host) {
            return Ok(None);
        }
        let named = if to.scheme_str() == Some("https") { &self.https } else { &self.http };
        if let Some(proxy) = named {
            return proxy.clone().map(Some);
        }
        #[cfg(windows)]
        if let Some(address) = self.system.as_ref().and_then(|system| system.of(to)) {
            return parse("the proxy of Windows", &address).map(Some);
        }
        Ok(None)
    }
}

fn parse(name: &str, address: &str) -> Result<ureq::Proxy, String> {
    let proxy = ureq::Proxy::new(address).ok();
    let is_web = |proxy: &ureq::Proxy| {
        matches!(proxy.protocol(), ureq::ProxyProtocol::Http | ureq::ProxyProtocol::Https)
    };
    // The address may have a password, and is not shown.
    proxy.filter(is_web).ok_or_else(|| {
        format!("{name}: expected the address of an HTTP proxy, such as http://proxy.example.com:8080")
    })
}

impl Exempt {
    /// As curl reads `NO_PROXY`: names between commas or blanks, with or without `*.` or `.` before them.
    fn parse(text: &str) -> Exempt {
        let names = text.split([',', ' ', '\t']).filter(|name| !name.is_empty());
        let hosts = names.clone().map(|name| {
            let host = name.strip_prefix('*').unwrap_or(name);
            host.strip_prefix('.').unwrap_or(host).trim_matches(['[', ']']).to_ascii_lowercase()
        });
        Exempt {
            hosts: hosts.filter(|host| !host.is_empty()).collect(),
            all: names.clone().any(|name| name == "*"),
        }
    }

    fn has(&self, host: &str) -> bool {
        let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
        self.all
            || self.hosts.iter().any(|known| {
                host.strip_suffix(known.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            })
    }
}

/// The proxy for addresses of `scheme` in a list as Windows has it: `proxy:80`, or `http=a:80;https=b:80`.
#[cfg_attr(not(windows), allow(dead_code))]
pub(super) fn of_list(list: &str, scheme: &str) -> Option<String> {
    let entries = || list.split([';', ' ', '\t', '\r', '\n']).filter(|entry| !entry.is_empty());
    let own = entries().find_map(|entry| {
        let (of, address) = entry.split_once('=')?;
        of.eq_ignore_ascii_case(scheme).then_some(address)
    });
    let any = || entries().find(|entry| !entry.contains('='));
    own.or_else(any).map(str::to_owned).filter(|address| !address.is_empty())
}

/// Whether Windows' list of exceptions has a host: names and addresses with `*` in them, and `<local>` for names without
/// a dot.
#[cfg_attr(not(windows), allow(dead_code))]
pub(super) fn is_bypassed(list: &str, host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    list.split([';', ' ', '\t', '\r', '\n']).filter(|entry| !entry.is_empty()).any(|entry| {
        let entry = entry.to_ascii_lowercase();
        let name = entry.split_once("://").map_or(entry.as_str(), |(_, name)| name);
        if name == "<local>" { !host.contains('.') } else { matches_stars(name, &host) }
    })
}

/// Whether `pattern`, of which each `*` stands for any text, is the whole of `text`.
fn matches_stars(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The host of the proxy for each of these addresses under these variables.
    fn hosts<const N: usize>(variables: &[(&str, &str)], addresses: [&str; N]) -> [Option<String>; N] {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let mut proxies = Proxies::new(&Proxy::Environment, &variable);
        #[cfg(windows)]
        {
            proxies.system = None;
        }
        let _ = &mut proxies;
        addresses.map(|address| {
            let proxy = proxies.of(&address.parse().unwrap()).unwrap()?;
            Some(format!("{}:{}", proxy.host(), proxy.port()))
        })
    }

    #[test]
    fn each_variable_is_for_its_scheme() {
        let both = ["http://s/x", "https://s/x"];
        let some = |host: &str| Some(host.to_owned());
        assert_eq!(hosts(&[], both), [None, None]);
        assert_eq!(hosts(&[("HTTPS_PROXY", "http://a:1")], both), [None, some("a:1")]);
        assert_eq!(hosts(&[("http_proxy", "a:1"), ("HTTPS_PROXY", " ")], both), [some("a:1"), None]);
        let all = [("ALL_PROXY", "http://all"), ("HTTP_PROXY", "b:2")];
        assert_eq!(hosts(&all, both), [some("b:2"), some("all:80")]);
        let symbols = [("_NT_SYMBOL_PROXY", "sym:3128"), ("HTTPS_PROXY", "a:1"), ("NO_PROXY", "other")];
        assert_eq!(hosts(&symbols, both), [some("sym:3128"), some("sym:3128")]);
    }

    #[test]
    fn hosts_that_are_reached_directly() {
        let addresses = [
            "http://corp/",
            "https://a.CORP/",
            "http://notcorp/",
            "http://x.b/",
            "http://b/",
            "http://[::1]:8/",
        ];
        let is_direct = |no_proxy| {
            let variables = [("ALL_PROXY", "p:1"), ("NO_PROXY", no_proxy)];
            hosts(&variables, addresses).map(|host| host.is_none())
        };
        assert_eq!(is_direct("corp, *.b"), [true, true, false, true, true, false]);
        assert_eq!(is_direct(".corp b [::1]"), [true, true, false, true, true, true]);
        assert_eq!(is_direct("*"), [true; 6]);
        assert_eq!(is_direct(" ,"), [false; 6]);
    }

    #[test]
    fn what_is_no_proxy_is_said_without_its_password() {
        for address in ["socks5://me:secret@proxy:1080", "me:secret@", "http://"] {
            let proxies = Proxies::new(&Proxy::Address(address.to_owned()), &|_| None);
            let why = proxies.of(&"http://s/x".parse().unwrap()).unwrap_err();
            assert!(why.contains("proxy") && !why.contains("secret"), "{why}");
        }
    }

    #[test]
    fn the_lists_of_windows() {
        for (list, scheme, proxy) in [
            ("proxy:8080", "https", Some("proxy:8080")),
            ("http=a:1;HTTPS=b:2", "https", Some("b:2")),
            ("http=a:1; ftp=c:3", "https", None),
            ("socks=s:1;p:2 q:3", "http", Some("p:2")),
            ("", "http", None),
        ] {
            assert_eq!(of_list(list, scheme).as_deref(), proxy, "{list}");
        }
        let bypass = "<local>;*.corp.example;10.*;https://one.example";
        let hosts = [
            "server",
            "a.corp.example",
            "10.1.2.3",
            "one.example",
            "110.1.2.3",
            "corp.example",
            "x.one.example",
        ];
        let is = hosts.map(|host| is_bypassed(bypass, host));
        assert_eq!(is, [true, true, true, true, false, false, false]);
        assert!(
            is_bypassed("a*b*c", "aXbYbc") && !is_bypassed("a*b*c", "acb") && !is_bypassed("ab*ba", "aba")
        );
    }
}
