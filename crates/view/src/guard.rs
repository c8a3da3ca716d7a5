//! Who may ask: only the page that this server gave out, with its token.
//!
//! Any page in the browser can send requests to this port, and by DNS rebinding even under a name of its own. So the
//! token must be in the path, the host must be this one, and what a browser says of the asking page must fit.

use axum::http::{HeaderMap, header};
use std::fmt::Write;

/// How many random bytes a token has.
const BYTES: usize = 16;

/// The address of the server, as far as requests must name it.
#[derive(Clone, Debug)]
pub struct Guard {
    token: String,
    hosts: [String; 3],
}

impl Guard {
    /// With a new token.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn new(port: u16) -> Result<Self, getrandom::Error> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes)?;
        let token = bytes.iter().fold(String::new(), |mut token, byte| {
            let _ = write!(token, "{byte:02x}");
            token
        });
        let hosts = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
        Ok(Self { token, hosts })
    }

    /// The token.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The path behind the token, if this request may be answered.
    #[must_use]
    pub fn admit<'a>(&self, path: &'a str, headers: &HeaderMap) -> Option<&'a str> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let one = |name| headers.get_all(name).iter().count() == 1;
        let host = text(header::HOST).filter(|_| one(header::HOST))?;
        if !self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host)) {
            return None;
        }
        let own = |origin: &str| origin.strip_prefix("http://").is_some_and(|origin| origin.eq_ignore_ascii_case(host));
        if text(header::ORIGIN).is_some_and(|origin| !own(origin)) {
            return None;
        }
        let site = headers.get("sec-fetch-site").map(|value| value.as_bytes());
        if site.is_some_and(|site| site != b"same-origin" && site != b"none") {
            return None;
        }
        let (token, rest) = path.strip_prefix('/')?.split_once('/')?;
        same(token, &self.token).then_some(rest)
    }
}

/// Whether two texts are the same, in a time that does not say how much of them is.
fn same(a: &str, b: &str) -> bool {
    let differ = a.bytes().zip(b.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b));
    a.len() == b.len() && std::hint::black_box(differ) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_page_is_admitted() {
        let guard = Guard::new(4000).unwrap();
        let path = format!("/{}/api/traces", guard.token());
        let admitted = |path: &str, headers: &[(&'static str, &'static str)]| {
            let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            guard.admit(path, &headers.collect()).map(str::to_owned)
        };
        let host = ("host", "127.0.0.1:4000");
        let ok = Some("api/traces".to_owned());
        assert_eq!(admitted(&path, &[host]), ok);
        assert_eq!(admitted(&path, &[("host", "LOCALHOST:4000")]), ok);
        assert_eq!(
            admitted(&path, &[host, ("origin", "http://127.0.0.1:4000"), ("sec-fetch-site", "same-origin")]),
            ok
        );
        for headers in [
            &[][..],
            &[("host", "127.0.0.1")],
            &[("host", "evil.example:4000")],
            &[host, ("origin", "http://evil.example")],
            &[host, ("origin", "http://localhost:4000")],
            &[host, ("origin", "null")],
            &[host, ("sec-fetch-site", "cross-site")],
            &[host, ("sec-fetch-site", "same-site")],
        ] {
            assert_eq!(admitted(&path, headers), None, "{headers:?}");
        }
        for path in ["/api/traces", "/", "//api/traces", &path[..path.len() - 11], "/x/api/traces"] {
            assert_eq!(admitted(path, &[host]), None, "{path}");
        }
    }

    #[test]
    fn tokens_are_not_repeated() {
        let tokens = [Guard::new(1).unwrap(), Guard::new(1).unwrap()].map(|guard| guard.token);
        assert!(tokens[0] != tokens[1] && tokens.iter().all(|token| token.len() == 2 * BYTES));
    }
}
