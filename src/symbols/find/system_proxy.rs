//! The proxy settings of this user on Windows: a fixed one, a script, or one that the network announces.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use ureq::http::Uri;
use windows_sys::Win32::Foundation::GlobalFree;
use windows_sys::Win32::Networking::WinHttp::{
    WINHTTP_ACCESS_TYPE_NO_PROXY, WINHTTP_AUTO_DETECT_TYPE_DHCP, WINHTTP_AUTO_DETECT_TYPE_DNS_A,
    WINHTTP_AUTOPROXY_AUTO_DETECT, WINHTTP_AUTOPROXY_CONFIG_URL, WINHTTP_AUTOPROXY_OPTIONS,
    WINHTTP_CURRENT_USER_IE_PROXY_CONFIG, WINHTTP_PROXY_INFO, WinHttpCloseHandle,
    WinHttpGetIEProxyConfigForCurrentUser, WinHttpGetProxyForUrl, WinHttpOpen,
};

use super::proxy::{is_bypassed, of_list};

/// The settings, read at the first address; and what they say of each server.
#[derive(Default)]
pub(super) struct SystemProxies {
    settings: OnceLock<Settings>,
    known: Mutex<HashMap<String, Option<String>>>,
}

#[derive(Default)]
struct Settings {
    /// Look for a script that the network announces.
    detect: bool,
    /// The address of a script.
    script: Option<String>,
    list: Option<String>,
    bypass: Option<String>,
}

impl SystemProxies {
    /// The address of the proxy; `None` for a server that is reached directly.
    pub(super) fn of(&self, to: &Uri) -> Option<String> {
        let (scheme, host) = (to.scheme_str()?, to.host()?);
        let server = format!("{scheme}://{}/", to.authority()?.as_str());
        // A script may take seconds to be found, and is asked once for all searches.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(proxy) = known.get(&server) {
            return proxy.clone();
        }
        let settings = self.settings.get_or_init(Settings::of_user);
        let (list, bypass) =
            settings.by_script(&server).unwrap_or_else(|| (settings.list.clone(), settings.bypass.clone()));
        let list = list.filter(|_| !bypass.is_some_and(|bypass| is_bypassed(&bypass, host)));
        let proxy = list.and_then(|list| of_list(&list, scheme));
        known.insert(server, proxy.clone());
        proxy
    }
}

impl Settings {
    fn of_user() -> Settings {
        let mut config = WINHTTP_CURRENT_USER_IE_PROXY_CONFIG::default();
        // SAFETY: the structure is one of ours, and is filled in.
        if unsafe { WinHttpGetIEProxyConfigForCurrentUser(&mut config) } == 0 {
            return Settings::default();
        }
        Settings {
            detect: config.fAutoDetect != 0,
            // SAFETY: the call succeeded, so each is a text that is now ours, or null.
            script: unsafe { taken(config.lpszAutoConfigUrl) },
            // SAFETY: as above.
            list: unsafe { taken(config.lpszProxy) },
            // SAFETY: as above.
            bypass: unsafe { taken(config.lpszProxyBypass) },
        }
    }

    /// The list of proxies that a script has for an address, and its exceptions; `None` if no script says anything.
    fn by_script(&self, address: &str) -> Option<(Option<String>, Option<String>)> {
        if !self.detect && self.script.is_none() {
            return None;
        }
        let session = Session::open()?;
        let address = wide(address);
        // As browsers do: the announced script comes first.
        let announced = self.detect.then(|| session.ask(&address, None)).flatten();
        announced.or_else(|| session.ask(&address, Some(&wide(self.script.as_ref()?))))
    }
}

/// A session of WinHTTP.
struct Session(*mut c_void);

impl Session {
    fn open() -> Option<Session> {
        // SAFETY: no name of a program, proxy or exception is given, which each may be null.
        let handle =
            unsafe { WinHttpOpen(ptr::null(), WINHTTP_ACCESS_TYPE_NO_PROXY, ptr::null(), ptr::null(), 0) };
        (!handle.is_null()).then_some(Session(handle))
    }

    /// Asks the script at `script`, or the one that the network announces.
    fn ask(&self, address: &[u16], script: Option<&[u16]>) -> Option<(Option<String>, Option<String>)> {
        let mut options = WINHTTP_AUTOPROXY_OPTIONS::default();
        match script {
            Some(script) => {
                options.dwFlags = WINHTTP_AUTOPROXY_CONFIG_URL;
                options.lpszAutoConfigUrl = script.as_ptr();
                // The user named this server; who announces one on the network gets no log-in.
                options.fAutoLogonIfChallenged = 1;
            }
            None => {
                options.dwFlags = WINHTTP_AUTOPROXY_AUTO_DETECT;
                options.dwAutoDetectFlags = WINHTTP_AUTO_DETECT_TYPE_DHCP | WINHTTP_AUTO_DETECT_TYPE_DNS_A;
            }
        }
        let mut info = WINHTTP_PROXY_INFO::default();
        // SAFETY: the handle is open, both texts end with a zero and outlive the call, and the structures are ours.
        if unsafe { WinHttpGetProxyForUrl(self.0, address.as_ptr(), &mut options, &mut info) } == 0 {
            return None;
        }
        // SAFETY: the call succeeded, so each is a text that is now ours, or null. With `DIRECT` the first is null.
        Some(unsafe { (taken(info.lpszProxy), taken(info.lpszProxyBypass)) })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and nobody else has it.
        unsafe { WinHttpCloseHandle(self.0) };
    }
}

/// A text that WinHTTP gave away, which is freed; `None` for an empty one.
///
/// # Safety
/// Null, or a text with a zero at its end that `GlobalFree` frees and nobody else has.
unsafe fn taken(text: *mut u16) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: as the caller promises, all up to the zero can be read.
    let read = unsafe {
        let length = (0..).take_while(|&at| *text.add(at) != 0).count();
        String::from_utf16_lossy(std::slice::from_raw_parts(text, length))
    };
    // SAFETY: as the caller promises; it is not used any more.
    unsafe { GlobalFree(text.cast()) };
    Some(read).filter(|text| !text.trim().is_empty())
}

fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}

#[cfg(test)]
mod tests {
    use super::{Settings, SystemProxies};

    #[test]
    fn the_system_answers() {
        let settings = Settings::of_user();
        // Nothing listens there: a script that cannot be had says nothing.
        let script = Some("http://127.0.0.1:9/proxy.pac".to_owned());
        let broken = Settings { detect: false, script, list: settings.list, bypass: settings.bypass };
        assert!(broken.by_script("http://symbols.example/").is_none());
        assert!(Settings::default().by_script("http://symbols.example/").is_none());
    }

    #[test]
    fn a_fixed_proxy_has_its_exceptions() {
        let system = SystemProxies::default();
        let list = Some("http=a:1;https=b:2".to_owned());
        let settings =
            Settings { detect: false, script: None, list, bypass: Some("<local>;*.corp".to_owned()) };
        assert!(system.settings.set(settings).is_ok());
        let of = |address: &str| system.of(&address.parse().unwrap());
        assert_eq!(of("https://symbols.example/x").as_deref(), Some("b:2"));
        assert_eq!(of("https://symbols.example/y").as_deref(), Some("b:2"));
        assert_eq!(of("http://symbols.example/x").as_deref(), Some("a:1"));
        assert_eq!(of("http://server/x"), None);
        assert_eq!(of("https://s.corp/x"), None);
    }
}
