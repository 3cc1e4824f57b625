//! Tests of the service, over HTTP on a loopback address.

mod attacks;
mod bad_input;
mod compare;
mod documents;
mod followers;
mod inspection;
mod oracle;
mod page;
mod security;
mod service_description;
mod support;
