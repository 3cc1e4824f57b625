//! One file for each route.

pub(crate) mod compact;
pub(crate) mod compare;
pub(crate) mod document;
pub(crate) mod documents;
pub(crate) mod flush;
pub(crate) mod health;
pub(crate) mod metrics;
pub(crate) mod openapi;
mod parameters;
pub(crate) mod query;
pub(crate) mod segments;
pub(crate) mod stats;
pub(crate) mod trace;
