//! The service's API for fingerprints over Redis. A fingerprint is in four sets, one for each block of 16 bits. A fingerprint within
//! 3 bits of a query has an equal block, so a query reads four sets, in one pipeline, and compares their members. A member is an
//! integer, so that small sets are compact.

use axum::extract::{Query, State};
use axum::routing::post;
use axum::{Json, Router};
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use serde::{Deserialize, Serialize};

const MAX_DISTANCE: u32 = 3;

#[derive(Deserialize)]
struct Item {
    fingerprint: String,
}

/// One item or an array.
#[derive(Deserialize)]
#[serde(untagged)]
enum Items {
    One(Item),
    Many(Vec<Item>),
}

#[derive(Serialize)]
struct Match {
    fingerprint: String,
    distance: u32,
}

#[derive(Serialize)]
struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'static str>,
    matches: Vec<Match>,
}

#[derive(Deserialize)]
struct Options {
    #[serde(default = "yes")]
    if_new: bool,
}

fn yes() -> bool {
    true
}

type Failure = (axum::http::StatusCode, String);

fn failure(error: &impl ToString) -> Failure {
    (axum::http::StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

fn parse(items: &Items) -> Result<Vec<u64>, Failure> {
    let items = match items {
        Items::One(item) => std::slice::from_ref(item),
        Items::Many(items) => items,
    };
    items
        .iter()
        .map(|item| u64::from_str_radix(&item.fingerprint, 16).map_err(|error| failure(&error)))
        .collect()
}

/// Returns the keys of the four sets of a fingerprint: the number of the block and its 16 bits.
fn keys(fingerprint: u64) -> [[u8; 3]; 4] {
    std::array::from_fn(|block| {
        let [low, high] = ((fingerprint >> (16 * block)) as u16).to_le_bytes();
        [block as u8, low, high]
    })
}

/// Looks up all fingerprints in one pipeline.
async fn look_up(redis: &mut ConnectionManager, fingerprints: &[u64]) -> Result<Vec<Vec<Match>>, Failure> {
    let mut pipeline = redis::pipe();
    for &fingerprint in fingerprints {
        for key in keys(fingerprint) {
            pipeline.smembers(&key[..]);
        }
    }
    let members: Vec<Vec<i64>> = pipeline.query_async(redis).await.map_err(|error| failure(&error))?;
    let matches = fingerprints.iter().zip(members.chunks(4)).map(|(&query, sets)| {
        let mut near: Vec<u64> = sets.iter().flatten().map(|&member| member as u64).collect();
        near.retain(|member| (member ^ query).count_ones() <= MAX_DISTANCE);
        near.sort_unstable();
        near.dedup();
        let to_match = |member: u64| Match {
            fingerprint: format!("{member:016x}"),
            distance: (member ^ query).count_ones(),
        };
        near.into_iter().map(to_match).collect()
    });
    Ok(matches.collect())
}

fn respond(items: &Items, mut answers: Vec<Answer>) -> Json<serde_json::Value> {
    Json(match items {
        Items::One(_) => serde_json::to_value(answers.pop()).unwrap_or_default(),
        Items::Many(_) => serde_json::to_value(answers).unwrap_or_default(),
    })
}

async fn query(
    State(mut redis): State<ConnectionManager>,
    Json(items): Json<Items>,
) -> Result<Json<serde_json::Value>, Failure> {
    let found = look_up(&mut redis, &parse(&items)?).await?;
    let answers = found.into_iter().map(|matches| Answer { result: None, matches }).collect();
    Ok(respond(&items, answers))
}

/// Stores fingerprints, with `if_new` only those without a near one. Unlike in simstore, two requests at the same time may both
/// store near fingerprints.
async fn documents(
    State(mut redis): State<ConnectionManager>,
    Query(options): Query<Options>,
    Json(items): Json<Items>,
) -> Result<Json<serde_json::Value>, Failure> {
    let fingerprints = parse(&items)?;
    let found = match options.if_new {
        true => look_up(&mut redis, &fingerprints).await?,
        false => fingerprints.iter().map(|_| Vec::new()).collect(),
    };
    let mut pipeline = redis::pipe();
    let mut answers = Vec::new();
    for (&fingerprint, matches) in fingerprints.iter().zip(found) {
        let is_new = matches.is_empty();
        if is_new {
            for key in keys(fingerprint) {
                pipeline.sadd(&key[..], fingerprint as i64).ignore();
            }
        }
        answers.push(Answer { result: Some(if is_new { "stored" } else { "duplicate" }), matches });
    }
    if !pipeline.is_empty() {
        pipeline.query_async::<()>(&mut redis).await.map_err(|error| failure(&error))?;
    }
    Ok(respond(&items, answers))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(listen), Some(url)) = (arguments.next(), arguments.next()) else {
        return Err("usage: simstore-redis-service ADDRESS:PORT REDIS_URL".into());
    };
    // Like simstore, it waits for slow answers.
    let patient = ConnectionManagerConfig::new().set_response_timeout(None);
    let redis = ConnectionManager::new_with_config(redis::Client::open(url)?, patient).await?;
    let router = Router::new()
        .route("/query", post(query))
        .route("/documents", post(documents))
        .layer(axum::extract::DefaultBodyLimit::max(64 << 20))
        .with_state(redis);
    axum::serve(tokio::net::TcpListener::bind(listen).await?, router).await?;
    Ok(())
}
