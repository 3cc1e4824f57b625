//! Metrics for Prometheus.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::messages::StoreStats;

/// Upper bounds of the buckets of durations, in seconds, from 50 microseconds to 10 seconds.
const DURATION_BUCKETS: [f64; 17] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0,
];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: String,
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

/// Counters of the service. Gauges of the store are read when the metrics are asked for.
pub(crate) struct ServiceMetrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    durations: Family<RouteLabels, Histogram, fn() -> Histogram>,
    under_way: Gauge,
    rejected: Counter,
    connections: Gauge,
    syncs: Histogram,
    store: Vec<(Gauge<u64, AtomicU64>, StoreValue)>,
    is_compacting: Gauge,
}

fn duration_histogram() -> Histogram {
    Histogram::new(DURATION_BUCKETS)
}

/// Returns one of the statistics of a store.
type StoreValue = fn(&StoreStats) -> u64;

/// Gauges of the store: name, help, value.
const STORE_GAUGES: [(&str, &str, StoreValue); 13] = [
    ("simstore_documents", "Documents in the store", |stats| stats.documents),
    ("simstore_segments", "Segments of the store", |stats| stats.segments.len() as u64),
    ("simstore_segment_bytes", "Size of the files of all segments", |stats| stats.bytes),
    ("simstore_memory_bytes", "Memory of the store", |stats| stats.memory),
    ("simstore_memtable_bytes", "Size of all memtables", |stats| stats.memtable_bytes),
    ("simstore_memtable_entries", "Pairs that are not in segments yet", |stats| stats.memtable_entries),
    ("simstore_frozen_memtables", "Memtables that wait for a flush", |stats| stats.frozen_memtables as u64),
    ("simstore_logs", "Log files", |stats| stats.logs as u64),
    ("simstore_log_bytes", "Size of the log files", |stats| stats.log_bytes),
    ("simstore_compaction_debt_bytes", "Size of all segments except the largest", |stats| {
        stats.compaction_debt_bytes
    }),
    ("simstore_flushes", "Flushes since the start", |stats| stats.flushes),
    ("simstore_compactions", "Merges of segments since the start", |stats| stats.compactions),
    ("simstore_compaction_bytes", "Bytes that merges wrote since the start", |stats| stats.compaction_bytes),
];

impl ServiceMetrics {
    pub(crate) fn new() -> ServiceMetrics {
        let mut registry = Registry::default();
        let requests = Family::<RequestLabels, Counter>::default();
        let durations: Family<RouteLabels, Histogram, fn() -> Histogram> =
            Family::new_with_constructor(duration_histogram);
        let (under_way, connections, is_compacting) = (Gauge::default(), Gauge::default(), Gauge::default());
        let rejected = Counter::default();
        let syncs = duration_histogram();
        registry.register("simstore_requests", "Answered requests", requests.clone());
        registry.register("simstore_request_seconds", "Time from request to answer", durations.clone());
        registry.register("simstore_requests_under_way", "Requests under way", under_way.clone());
        registry.register("simstore_requests_rejected", "Requests with the status 429", rejected.clone());
        registry.register("simstore_connections", "Open connections", connections.clone());
        registry.register("simstore_sync_seconds", "Time of a sync to disk", syncs.clone());
        registry.register("simstore_compaction_running", "1 while a compaction runs", is_compacting.clone());
        let mut store = Vec::new();
        for (name, help, value) in STORE_GAUGES {
            let gauge = Gauge::<u64, AtomicU64>::default();
            registry.register(name, help, gauge.clone());
            store.push((gauge, value));
        }
        ServiceMetrics {
            registry,
            requests,
            durations,
            under_way,
            rejected,
            connections,
            syncs,
            store,
            is_compacting,
        }
    }

    pub(crate) fn observe_request(
        &self,
        method: &Method,
        route: &str,
        status: StatusCode,
        elapsed: Duration,
    ) {
        // A client can invent methods, so unknown ones count as one.
        let known = [Method::GET, Method::HEAD, Method::POST, Method::DELETE, Method::OPTIONS, Method::PUT];
        let method = if known.contains(method) { method.as_str() } else { "other" };
        let labels =
            RequestLabels { method: method.to_owned(), route: route.to_owned(), status: status.as_u16() };
        self.requests.get_or_create(&labels).inc();
        self.durations.get_or_create(&RouteLabels { route: labels.route }).observe(elapsed.as_secs_f64());
        if status == StatusCode::TOO_MANY_REQUESTS {
            self.rejected.inc();
        }
    }

    pub(crate) fn observe_sync(&self, elapsed: Duration) {
        self.syncs.observe(elapsed.as_secs_f64());
    }

    pub(crate) fn connections(&self) -> &Gauge {
        &self.connections
    }

    /// Returns all metrics in the text format of OpenMetrics. `store` is `None` while the store is not open.
    pub(crate) fn encode(
        &self,
        store: Option<&StoreStats>,
        under_way: usize,
        is_compacting: bool,
    ) -> Result<String, std::fmt::Error> {
        self.under_way.set(under_way as i64);
        self.is_compacting.set(i64::from(is_compacting));
        if let Some(stats) = store {
            for (gauge, value) in &self.store {
                gauge.set(value(stats));
            }
        }
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// The metrics of one service, shared by its connections.
pub(crate) type SharedMetrics = Arc<ServiceMetrics>;
