//! `simstore serve`: a store as a service.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use simstore::{Error, StoreOptions};
use simstore_server::{AccessToken, LogFormat, ServerConfig, ServiceLimits, TlsFiles, serve, start_logging};

use crate::command_error::{CommandError, CommandResult};
use crate::numbers::parse_bytes;
use crate::profile_args::ProfileArgs;

const EXAMPLES: &str = "\
See docs/service.md for running, securing and watching a service. It answers JSON over HTTP/1.1 and HTTP/2: documents in, \
near-duplicates out. /openapi.json describes all requests and answers.

SIGTERM and Ctrl-C end the service: requests that were accepted are answered, and the store is closed. Exit status: 0 after such an \
end.

Examples:
  simstore serve pages.simstore
  simstore serve pages.simstore --read-only --listen 127.0.0.1:8121
  simstore serve pages.simstore --write-token-file write.token --allow-host pages.example.org
  simstore serve pages.simstore --tls-certificate cert.pem --tls-key key.pem";

/// Serve a store over HTTP
///
/// Other programs send documents and queries to the service, in any language. One service at a time may write to a store; with
/// --read-only, any number may read it beside another process that writes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// The store
    store: PathBuf,
    /// Address and port to listen on; port 0 is any free port. Another address than a loopback address needs tokens
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8120")]
    listen: SocketAddr,
    /// Only read the store, beside another process that writes to it
    #[arg(long)]
    read_only: bool,
    /// With --read-only: milliseconds between two refreshes
    #[arg(long, value_name = "MS", default_value_t = 500, requires = "read_only")]
    refresh: u64,
    /// File with the token that a client needs for reading [environment: SIMSTORE_READ_TOKEN]
    #[arg(long, value_name = "FILE", help_heading = "Security")]
    read_token_file: Option<PathBuf>,
    /// File with the token that a client needs for writing and reading [environment: SIMSTORE_WRITE_TOKEN]
    #[arg(long, value_name = "FILE", help_heading = "Security")]
    write_token_file: Option<PathBuf>,
    /// TLS certificate with its intermediate certificates, in PEM format; read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = "Security")]
    tls_certificate: Option<PathBuf>,
    /// Private key of the certificate, in PEM format
    #[arg(long, value_name = "FILE", requires = "tls_certificate", help_heading = "Security")]
    tls_key: Option<PathBuf>,
    /// Origin of web pages whose scripts may use the service, such as https://example.org; may be repeated
    #[arg(long, value_name = "ORIGIN", help_heading = "Security")]
    allow_origin: Vec<String>,
    /// Host name by which clients may address a service on a loopback address, for a reverse proxy; may be repeated
    #[arg(long, value_name = "HOST", help_heading = "Security")]
    allow_host: Vec<String>,
    #[command(flatten)]
    limits: LimitArgs,
    /// Size of the in-memory write buffer (memtable), such as 64M
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    memtable: Option<u64>,
    /// Format of the log on standard error: text or json
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = parse_log_format)]
    log: LogFormat,
    /// Log all requests, not only those that fail or take longer than a second
    #[arg(long)]
    log_requests: bool,
    /// Seconds for answering accepted requests before the service ends
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    shutdown_seconds: u64,
    #[command(flatten)]
    profile: ProfileArgs,
}

/// Limits of requests and connections.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// Largest body of a request
    #[arg(long, value_name = "BYTES", default_value = "32M", value_parser = parse_bytes)]
    max_body: u64,
    /// Memory for the bodies of all requests under way
    #[arg(long, value_name = "BYTES", default_value = "512M", value_parser = parse_bytes)]
    max_bodies: u64,
    /// Documents or queries in one array
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    max_items: usize,
    /// Largest text of a document or query
    #[arg(long, value_name = "BYTES", default_value = "4M", value_parser = parse_bytes)]
    max_text: u64,
    /// Matches in one answer
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    max_results: usize,
    /// Requests under way; others are answered with the status 429
    #[arg(long, value_name = "N", default_value_t = 256)]
    max_requests: usize,
    /// Connections; others are closed
    #[arg(long, value_name = "N", default_value_t = 16_384)]
    max_connections: usize,
    /// Seconds from a request to its answer
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    request_seconds: u64,
    /// Seconds for the headers of a request, and between two requests of a connection
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    header_seconds: u64,
    /// Seconds without a byte of a body
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    idle_seconds: u64,
}

fn parse_log_format(name: &str) -> Result<LogFormat, String> {
    name.parse().map_err(|error: Error| error.to_string())
}

pub(crate) fn run(args: &ServeArgs) -> CommandResult {
    let config = config(args)?;
    config.check().map_err(CommandError::usage)?;
    start_logging(args.log, args.log_requests);
    Ok(serve(&config)?)
}

fn config(args: &ServeArgs) -> CommandResult<ServerConfig> {
    let (profile, resources) = args.profile.name_and_resources()?;
    let mut store_options = StoreOptions::default();
    store_options.memtable = args.memtable.unwrap_or(store_options.memtable);
    let tls = args.tls_certificate.clone().zip(args.tls_key.clone());
    Ok(ServerConfig {
        address: args.listen,
        read_only: args.read_only,
        refresh: Duration::from_millis(args.refresh.max(1)),
        store_options,
        profile,
        resources,
        read_token: token(args.read_token_file.as_deref(), "SIMSTORE_READ_TOKEN")?,
        write_token: token(args.write_token_file.as_deref(), "SIMSTORE_WRITE_TOKEN")?,
        tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
        allowed_origins: args.allow_origin.clone(),
        allowed_hosts: args.allow_host.clone(),
        limits: limits(&args.limits),
        shutdown_time: Duration::from_secs(args.shutdown_seconds),
        ..ServerConfig::new(&args.store)
    })
}

fn limits(args: &LimitArgs) -> ServiceLimits {
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    ServiceLimits {
        body_bytes: size(args.max_body),
        all_bodies_bytes: size(args.max_bodies),
        items: args.max_items,
        text_bytes: size(args.max_text),
        results: args.max_results,
        requests: args.max_requests,
        connections: args.max_connections,
        request_time: Duration::from_secs(args.request_seconds),
        header_time: Duration::from_secs(args.header_seconds),
        idle_time: Duration::from_secs(args.idle_seconds),
    }
}

/// Reads a token from a file or, without a file, from an environment variable. `None` if neither is given.
fn token(file: Option<&Path>, variable: &str) -> CommandResult<Option<AccessToken>> {
    let token = match (file, std::env::var(variable)) {
        (Some(file), _) => AccessToken::read(file),
        (None, Ok(text)) => AccessToken::new(&text)
            .map_err(|error| Error::BadArgument(format!("environment variable {variable}: {error}"))),
        (None, Err(_)) => return Ok(None),
    };
    token.map(Some).map_err(CommandError::usage)
}
