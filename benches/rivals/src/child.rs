//! Jobs for a process of their own, and their answers.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};

use crate::join::{self, JoinJob, JoinRow};
use crate::measure::{self, QueryJob, QueryRow};

/// What a child is asked.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// To build an index and ask it.
    Query(QueryJob),
    /// To find all pairs.
    Join(JoinJob),
}

/// What a child answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Response {
    /// The figures of an index.
    Query(QueryRow),
    /// The figures of a self-join.
    Join(JoinRow),
}

/// Starts this program again to do a job.
///
/// # Errors
/// Why there are no figures.
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
    let answer: Result<Response, String> = serde_json::from_slice(&output.stdout)?;
    answer.map_err(|reason| anyhow!(reason))
}

/// Does the job that standard input has.
pub(crate) fn serve_request() -> Result<()> {
    let answer = match serde_json::from_reader(io::stdin().lock())? {
        Request::Query(job) => measure::run(&job).map(Response::Query),
        Request::Join(job) => join::run(&job).map(Response::Join),
    };
    let answer = answer.map_err(|error| format!("{error:#}"));
    io::stdout().write_all(&serde_json::to_vec(&answer)?)?;
    Ok(())
}
