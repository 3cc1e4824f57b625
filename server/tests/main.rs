//! Tests of the service, over HTTP on a loopback address.

mod attacks;
mod bad_input;
mod documents;
mod followers;
mod oracle;
mod security;
mod service_description;
mod support;
