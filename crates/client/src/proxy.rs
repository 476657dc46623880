//! Whether the API server is reached through a proxy, and through which: `proxy-url` of the kubeconfig, or the environment, as Go
//! reads it.

use std::net::IpAddr;

use http::Uri;

use crate::environment::ProxyEnvironment;

/// Through which proxy a server is reached; an error says why one that is named is not used.
pub(crate) fn choose(
    server: &Uri,
    configured: Option<&Uri>,
    environment: &ProxyEnvironment,
) -> Result<Option<Uri>, String> {
    let from_environment = match server.scheme_str() {
        Some("http") => &environment.http_proxy,
        _ => &environment.https_proxy,
    };
    let proxy = match configured {
        Some(configured) => Some(configured.clone()),
        None if is_direct(server, environment.no_proxy.as_deref().unwrap_or_default()) => None,
        None => from_environment.as_deref().map(parse).transpose()?,
    };
    match proxy {
        Some(proxy) if proxy.scheme_str() != Some("http") => {
            Err(format!("{proxy}: only proxies that begin with http:// are supported"))
        }
        Some(proxy) if proxy.authority().is_some_and(|authority| authority.as_str().contains('@')) => {
            Err("a proxy that wants a password is not supported".to_owned())
        }
        proxy => Ok(proxy),
    }
}

/// As Go reads it: without a scheme, `http://` is meant.
fn parse(proxy: &str) -> Result<Uri, String> {
    let text = if proxy.contains("://") { proxy.to_owned() } else { format!("http://{proxy}") };
    text.parse().map_err(|error| format!("{proxy:?} is no address: {error}"))
}

/// Whether a server is reached directly by Go's rules: this machine always is, and whatever `NO_PROXY` lists: `*` for all,
/// addresses, networks, and domains with what is below them (with a leading dot only that).
fn is_direct(server: &Uri, no_proxy: &str) -> bool {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase();
    let address: Option<IpAddr> = host.parse().ok();
    if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
        return true;
    }
    let port = server.port_u16().unwrap_or(if server.scheme_str() == Some("http") { 80 } else { 443 });
    let mut entries = no_proxy.split(',').map(|entry| entry.trim().to_ascii_lowercase());
    entries.any(|entry| covers(&entry, &host, address, port))
}

fn covers(entry: &str, host: &str, address: Option<IpAddr>, port: u16) -> bool {
    if entry == "*" {
        return true;
    }
    if let (Some((network, bits)), Some(address)) = (entry.split_once('/'), address) {
        return is_in_network(address, network, bits);
    }
    let (name, wanted_port) = match entry.rsplit_once(':') {
        // What has more colons is an address of IPv6 without a port, unless it is in brackets.
        Some((name, digits)) if !name.contains(':') || name.ends_with(']') => (name, digits.parse().ok()),
        _ => (entry, None),
    };
    if wanted_port.is_some_and(|wanted: u16| wanted != port) {
        return false;
    }
    let name = name.trim_matches(['[', ']']);
    if let Some(address) = address {
        return name.parse() == Ok(address);
    }
    let name = name.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(name);
    match name.strip_prefix('.') {
        Some(_) => host.ends_with(name),
        None => !name.is_empty() && (host == name || host.ends_with(&format!(".{name}"))),
    }
}

fn is_in_network(address: IpAddr, network: &str, bits: &str) -> bool {
    let (Ok(network), Ok(bits)) = (network.parse::<IpAddr>(), bits.parse::<u32>()) else { return false };
    let differs =
        |a: u128, b: u128, size: u32| bits > size || (a ^ b).checked_shr(size - bits).unwrap_or(0) != 0;
    match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => !differs(a.to_bits().into(), b.to_bits().into(), u32::BITS),
        (IpAddr::V6(a), IpAddr::V6(b)) => !differs(a.to_bits(), b.to_bits(), u128::BITS),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_proxy_is_read_as_in_go() {
        for (entry, server, is_covered) in [
            ("", "https://api.example.com:6443", false),
            ("*", "https://api.example.com:6443", true),
            ("example.com", "https://api.example.com:6443", true),
            ("example.com", "https://example.com", true),
            ("example.com", "https://notexample.com", false),
            (".example.com", "https://example.com", false),
            ("*.example.com", "https://api.example.com", true),
            ("Example.COM", "https://API.example.com", true),
            ("other, api.example.com", "https://api.example.com:6443", true),
            ("api.example.com:443", "https://api.example.com:6443", false),
            ("api.example.com:6443", "https://api.example.com:6443", true),
            ("10.0.0.0/8", "https://10.1.2.3:6443", true),
            ("10.0.0.0/8", "https://11.1.2.3:6443", false),
            ("10.0.0.0/99", "https://10.0.0.0:6443", false),
            ("0.0.0.0/0", "https://11.1.2.3:6443", true),
            ("10.1.2.3", "https://10.1.2.3:6443", true),
            ("10.1.2.3:443", "https://10.1.2.3:6443", false),
            ("fd00::/8", "https://[fd00::1]:6443", true),
            ("fd00::1", "https://[fd00::1]:6443", true),
            ("[fd00::1]:6443", "https://[fd00::1]:6443", true),
            ("", "https://127.0.0.1:6443", true),
            ("", "https://localhost:6443", true),
            ("", "https://[::1]:6443", true),
        ] {
            let server = server.parse().expect("an address");
            assert_eq!(is_direct(&server, entry), is_covered, "{server} by {entry:?}");
        }
    }

    #[test]
    fn the_kubeconfig_goes_before_the_environment() {
        let uri = |text: &str| text.parse::<Uri>().expect("an address");
        let environment = ProxyEnvironment {
            https_proxy: Some("proxy:3128".to_owned()),
            http_proxy: None,
            no_proxy: Some("direct".to_owned()),
        };
        let (far, near, plain) = (uri("https://far"), uri("https://direct"), uri("http://far"));
        let (own, of_all) = (uri("http://own:8080"), uri("http://proxy:3128"));
        for (server, configured, chosen) in [
            (&far, None, Some(&of_all)),
            (&far, Some(&own), Some(&own)),
            (&near, None, None),
            (&near, Some(&own), Some(&own)),
            (&plain, None, None),
        ] {
            assert_eq!(choose(server, configured, &environment).as_ref(), Ok(&chosen.cloned()), "{server}");
        }
        for proxy in ["socks5://proxy:1080", "https://proxy", "http://user:password@proxy:3128", "a b"] {
            let environment =
                ProxyEnvironment { https_proxy: Some(proxy.to_owned()), ..ProxyEnvironment::default() };
            let error = choose(&far, None, &environment).expect_err(proxy);
            assert!(!error.contains("password@"), "a password is not repeated: {error}");
        }
    }
}
