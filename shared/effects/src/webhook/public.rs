//! Tells public addresses from others. A URL that another party chose must not reach the function's machine, its
//! network, or the credentials at 169.254.169.254.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use aws_smithy_runtime_api::client::dns::{DnsFuture, ResolveDns, ResolveDnsError};

/// Resolves names with public addresses alone. The connection goes to the address that was checked, so a name that
/// changes its address in between gains nothing.
#[derive(Clone, Debug)]
pub(super) struct Public;

impl ResolveDns for Public {
    fn resolve_dns<'a>(&'a self, name: &'a str) -> DnsFuture<'a> {
        DnsFuture::new(async move {
            let found = tokio::net::lookup_host((name, 0)).await.map_err(ResolveDnsError::new)?;
            let addresses: Vec<_> = found.map(|address| address.ip()).collect();
            match addresses.iter().all(|address| is_public(*address)) {
                true => Ok(addresses),
                false => Err(ResolveDnsError::new(io::Error::other(
                    "the host has a private address, and WEBHOOK_PRIVATE is not true",
                ))),
            }
        })
    }
}

pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// The others are the networks of RFC 6890 that are not global, multicast, and reserved ones.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(a == 0
        || a >= 224
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || (a == 100 && b & 0xc0 == 64) // between a provider and its customers
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99) // relays to IPv6
        || (a == 198 && b & 0xfe == 18)) // measurements of networks
}

/// The global addresses, 2000::/3, without those that lead to an address of IPv4 and those for documentation.
fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        [0x2001, b, ..] if b < 0x200 || b == 0x0db8 => false,
        [0x2002 | 0x3fff, ..] => false,
        [a, ..] => a & 0xe000 == 0x2000,
    }
}

#[test]
fn only_addresses_of_the_public_internet_are_public() {
    for public in [
        "1.1.1.1",
        "93.184.216.34",
        "172.15.0.1",
        "172.32.0.1",
        "100.63.0.1",
        "100.128.0.1",
        "2606:4700::1111",
    ] {
        assert!(is_public(public.parse().expect("an address")), "{public}");
    }
    for private in [
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.1.2.3",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.8",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:1.1.1.1",
        "64:ff9b::7f00:1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "ff02::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "3fff::1",
    ] {
        assert!(!is_public(private.parse().expect("an address")), "{private}");
    }
}
