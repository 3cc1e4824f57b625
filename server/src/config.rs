//! Settings of a service.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use simstore::{Error, Result, StoreOptions};
use simstore_text::Resources;

use crate::access_token::AccessToken;

/// Default port of the service.
const DEFAULT_PORT: u16 = 8120;

/// Settings of a service: its store, its clients, and its limits.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Folder of the store, which must exist.
    pub store: PathBuf,
    /// Address to listen on; `127.0.0.1:8120` by default. Another address than a loopback address needs the tokens.
    pub address: SocketAddr,
    /// Whether the service only reads, beside another process that writes to the store.
    pub read_only: bool,
    /// Time between two refreshes of a service that only reads; half a second by default.
    pub refresh: Duration,
    /// Options for opening the store: memtable, memory, merges. Its settings, such as the distance, must be left out.
    pub store_options: StoreOptions,
    /// Text profile for a store that records none.
    pub profile: Option<String>,
    /// Files that the text profile needs.
    pub resources: Resources,
    /// Token that a client needs for reading; `None` lets every client read.
    pub read_token: Option<AccessToken>,
    /// Token that a client needs for writing; it also allows reading. `None` lets every client write.
    pub write_token: Option<AccessToken>,
    /// Certificate and key; `None` serves plain HTTP.
    pub tls: Option<TlsFiles>,
    /// Origins of web pages, such as `https://example.org`, whose scripts may use the service.
    pub allowed_origins: Vec<String>,
    /// Further host names for a service on a loopback address, besides `localhost`. A reverse proxy needs its host name here.
    pub allowed_hosts: Vec<String>,
    /// Limits of requests and connections.
    pub limits: ServiceLimits,
    /// Maximum time for answering accepted requests after SIGTERM; 30 seconds by default.
    pub shutdown_time: Duration,
}

/// Files of a TLS certificate and its key, in PEM format. They are read again when they change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// File of the certificate, followed by its intermediate certificates.
    pub certificate: PathBuf,
    /// File of the private key.
    pub key: PathBuf,
}

/// Limits of requests and connections. A request beyond a limit gets an error that names the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceLimits {
    /// Maximum size of a body in bytes; 32 MiB by default. A stream of lines may be longer, but a line may not.
    pub body_bytes: usize,
    /// Maximum memory for the bodies of all requests under way, in bytes; 512 MiB by default.
    pub all_bodies_bytes: usize,
    /// Maximum number of documents or queries in an array; 10,000 by default.
    pub items: usize,
    /// Maximum size of a text in bytes; 4 MiB by default.
    pub text_bytes: usize,
    /// Maximum number of matches in an answer; 10,000 by default.
    pub results: usize,
    /// Maximum number of requests under way; 256 by default.
    pub requests: usize,
    /// Maximum number of connections; 16,384 by default.
    pub connections: usize,
    /// Maximum time from the end of the headers to the beginning of the answer; 60 seconds by default.
    pub request_time: Duration,
    /// Maximum time for the headers of a request, and maximum time between two requests of a connection; 30 seconds by default.
    pub header_time: Duration,
    /// Maximum time without a byte of a body, or without reading a byte of an answer; 30 seconds by default.
    pub idle_time: Duration,
}

impl Default for ServiceLimits {
    fn default() -> Self {
        ServiceLimits {
            body_bytes: 32 << 20,
            all_bodies_bytes: 512 << 20,
            items: 10_000,
            text_bytes: 4 << 20,
            results: 10_000,
            requests: 256,
            connections: 16_384,
            request_time: Duration::from_secs(60),
            header_time: Duration::from_secs(30),
            idle_time: Duration::from_secs(30),
        }
    }
}

impl ServerConfig {
    /// Returns the default settings for a store: the loopback address, no tokens, no TLS.
    pub fn new(store: &Path) -> ServerConfig {
        ServerConfig {
            store: store.to_path_buf(),
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_PORT),
            read_only: false,
            refresh: Duration::from_millis(500),
            store_options: StoreOptions::default(),
            profile: None,
            resources: Resources::default(),
            read_token: None,
            write_token: None,
            tls: None,
            allowed_origins: Vec::new(),
            allowed_hosts: Vec::new(),
            limits: ServiceLimits::default(),
            shutdown_time: Duration::from_secs(30),
        }
    }

    /// Checks that the service is not open to strangers, and that the limits are usable.
    ///
    /// # Errors
    /// [`Error::BadArgument`] with the setting that must change.
    pub fn check(&self) -> Result<()> {
        let bad = |message: &str| Err(Error::BadArgument(message.to_owned()));
        let (has_read_token, has_write_token) = (self.read_token.is_some(), self.write_token.is_some());
        let needs_write_token = !self.read_only && !has_write_token;
        if !self.address.ip().is_loopback() && (!has_read_token || needs_write_token) {
            return Err(Error::BadArgument(format!(
                "{} is not a loopback address, so other machines reach it: give option `read_token_file`{}, or listen on 127.0.0.1",
                self.address,
                if self.read_only { "" } else { " and option `write_token_file`" }
            )));
        }
        if has_read_token && needs_write_token {
            return bad(
                "with a token for reading, every client could still write: give option `write_token_file` too",
            );
        }
        if has_read_token && self.read_token == self.write_token {
            return bad("the tokens for reading and for writing are equal: choose different ones");
        }
        let limits = &self.limits;
        if [limits.body_bytes, limits.all_bodies_bytes, limits.items, limits.text_bytes, limits.results]
            .contains(&0)
            || [limits.requests, limits.connections].contains(&0)
        {
            return bad("a limit is 0, so no request could succeed");
        }
        if limits.all_bodies_bytes < limits.body_bytes {
            return bad("the memory for all bodies is less than the maximum size of one body");
        }
        for origin in &self.allowed_origins {
            let host = origin.split_once("://").filter(|(scheme, _)| ["http", "https"].contains(scheme));
            if host.is_none_or(|(_, host)| host.is_empty() || host.contains('/')) {
                return Err(Error::BadArgument(format!(
                    "the origin `{origin}` is not like `https://example.org`: scheme and host, without a path"
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str) -> Option<AccessToken> {
        Some(AccessToken::new(text).unwrap())
    }

    #[test]
    fn other_machines_need_tokens() {
        let config = |address: &str| ServerConfig {
            address: address.parse().unwrap(),
            ..ServerConfig::new("s".as_ref())
        };
        for loopback in ["127.0.0.1:0", "127.9.9.9:80", "[::1]:80"] {
            config(loopback).check().unwrap();
        }
        let (read, write) = (token("read-token-0123456789"), token("write-token-0123456789"));
        for address in ["0.0.0.0:80", "192.168.0.1:80", "[::]:80", "[2001:db8::1]:80"] {
            let open = config(address);
            assert!(open.check().unwrap_err().to_string().contains("`read_token_file` and"), "{address}");
            let half = ServerConfig { read_token: read.clone(), ..open.clone() };
            assert!(half.check().is_err());
            assert!(ServerConfig { write_token: write.clone(), ..open.clone() }.check().is_err());
            ServerConfig { write_token: write.clone(), ..half.clone() }.check().unwrap();
            ServerConfig { read_only: true, ..half.clone() }.check().unwrap();
            assert!(ServerConfig { read_only: true, ..open }.check().is_err());
            assert!(ServerConfig { write_token: read.clone(), ..half }.check().is_err());
        }
        assert!(ServerConfig { read_token: read, ..config("127.0.0.1:0") }.check().is_err());
        ServerConfig { write_token: write, ..config("127.0.0.1:0") }.check().unwrap();
    }

    #[test]
    fn origins_have_a_scheme_and_no_path() {
        let check = |origin: &str| {
            ServerConfig { allowed_origins: vec![origin.to_owned()], ..ServerConfig::new("s".as_ref()) }
                .check()
        };
        assert!(check("https://example.org").is_ok() && check("http://localhost:3000").is_ok());
        assert!(
            ["*", "example.org", "https://", "https://example.org/", "file://x"]
                .iter()
                .all(|bad| check(bad).is_err())
        );
    }
}
