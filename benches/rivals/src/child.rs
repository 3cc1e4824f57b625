//! Requests that run in a child process, and their responses, as JSON on standard input and output.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};

use crate::join::{self, JoinJob, JoinRow};
use crate::measure::{self, QueryJob, QueryRow};

/// Request to a child process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Builds an index and measures its queries.
    Query(QueryJob),
    /// Runs and measures a self-join.
    Join(JoinJob),
}

/// Response of a child process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Response {
    /// Measurements of an index.
    Query(QueryRow),
    /// Measurements of a self-join.
    Join(JoinRow),
}

/// Starts this program again as a child process, and runs a request in it.
///
/// # Errors
/// If the child fails. The message says why there are no measurements.
pub(crate) fn run_in_child(request: &Request) -> Result<Response> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("--child")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start this program again")?;
    let mut input = child.stdin.take().context("the child has no standard input")?;
    input.write_all(&serde_json::to_vec(request)?)?;
    drop(input);
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("its process ended with {}", output.status);
    }
    let response: Result<Response, String> = serde_json::from_slice(&output.stdout)?;
    response.map_err(|reason| anyhow!(reason))
}

/// Runs the request on standard input, and writes its response to standard output.
pub(crate) fn serve_request() -> Result<()> {
    let response = match serde_json::from_reader(io::stdin().lock())? {
        Request::Query(job) => measure::run(&job).map(Response::Query),
        Request::Join(job) => join::run(&job).map(Response::Join),
    };
    let response = response.map_err(|error| format!("{error:#}"));
    io::stdout().write_all(&serde_json::to_vec(&response)?)?;
    Ok(())
}
