//! A store as a service: JSON over HTTP/1.1 and HTTP/2.
//!
//! [`serve`] serves one store of fingerprints or of similar documents, until the process gets SIGTERM or SIGINT. `docs/service.md`
//! describes the requests and answers; the service itself describes them at `/openapi.json`.
//!
//! ```no_run
//! use simstore_server::{ServerConfig, serve};
//!
//! let config = ServerConfig::new("pages.simstore".as_ref());
//! serve(&config)?;
//! # Ok::<(), simstore::Error>(())
//! ```
//!
//! # Where to start in the code
//!
//! `router` lists all routes. Each request passes `request_recorder`, then `request_guard`. `routes` has one file for each route. `messages` has the
//! bodies of requests and answers. `stores` connects them to the stores of the engine.
#![forbid(unsafe_code)]

mod access_log;
mod access_token;
mod authorization;
mod body_reader;
mod compaction_job;
mod config;
mod connection_limit;
mod engine_work;
mod file_limit;
mod json_items;
mod line_stream;
mod messages;
mod metrics;
mod page;
mod request_guard;
mod request_id;
mod request_limits;
mod request_origin;
mod request_recorder;
mod router;
mod routes;
mod serve;
mod service_error;
mod service_state;
mod stop_signal;
mod stores;
mod sync_group;
mod text_comparison;
mod tls;

pub use crate::access_log::{LogFormat, start_logging};
pub use crate::access_token::AccessToken;
pub use crate::config::{ServerConfig, ServiceLimits, TlsFiles};
pub use crate::routes::openapi::openapi_json;
pub use crate::serve::{RunningService, serve};
