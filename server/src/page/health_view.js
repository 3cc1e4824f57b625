// The view of the service's health: the log, memory, merges, errors and requests, refreshed while it is visible.

import { byId, bytesText, count, describe, element, table, timeText } from "./elements.js";
import { get, getText, showFailure } from "./service.js";

/** Milliseconds between two refreshes. */
const interval = 2000;
let timer;
let isShown = false;
/** The counts of the last refresh, and when it was. */
let last;

export async function showHealth() {
  isShown = true;
  last = undefined;
  await refresh();
}

export function hideHealth() {
  isShown = false;
  clearTimeout(timer);
}

document.addEventListener("visibilitychange", () => {
  if (!isShown || document.hidden) return;
  clearTimeout(timer);
  refresh();
});

async function refresh() {
  try {
    const [stats, metrics] = await Promise.all([get("/stats"), getText("/metrics")]);
    showFailure(undefined);
    if (isShown) showState(stats, metrics);
  } catch (error) {
    byId("health-state").textContent = "";
    showFailure(error);
  }
  // A page in the background asks nothing.
  if (isShown && !document.hidden) timer = setTimeout(refresh, interval);
}

function showState(stats, metrics) {
  const { compaction } = stats;
  const value = (name) => sum(metrics, name);
  const isBehind = stats.frozen_memtables > 1;
  byId("health-state").textContent = stats.last_error !== null
    ? "The store reported an error."
    : isBehind ? "Writers wait: full memtables are being written to segments." : "The service answers, and the store reports no error.";
  const merge = compaction.is_running ? `running${compaction.progress === null ? "" : `, ${Math.round(100 * compaction.progress)}% done`}` : "none is running";
  describe(byId("health-tiles"), [
    ["running for", timeText(stats.uptime_seconds)],
    ["log", `${bytesText(stats.log_bytes)} in ${stats.logs === 1 ? "1 file" : `${count(stats.logs)} files`}`],
    ["memtables", bytesText(stats.memtable_bytes)],
    ["full memtables, being written", count(stats.frozen_memtables)],
    ["pairs in memory, not in segments", count(stats.memtable_entries)],
    ["segments", count(stats.segments.length)],
    ["requested compaction", merge],
    ["left to merge into the largest segment", bytesText(stats.compaction_debt_bytes)],
    ["memtables written", `${count(stats.flushes)}, ${bytesText(stats.flush_bytes)}`],
    ["merges", `${count(stats.compactions)}, ${bytesText(stats.compaction_bytes)}`],
    ["requests under way", count(value("simstore_requests_under_way"))],
    ["connections", count(value("simstore_connections"))],
    ["syncs", meanText(metrics, "simstore_sync_seconds")],
    ["memory of the store", bytesText(stats.memory)],
  ]);
  const errors = [stats.last_error, compaction.last_error && `The last compaction: ${compaction.last_error}`].filter(Boolean);
  byId("health-errors").replaceChildren(...(errors.length > 0 ? errors : ["none since the service started"]).map((text) => element("li", "", text)));
  showRequests(metrics);
}

/** Returns the samples of a metric: labels and value of each line `NAME{LABELS} VALUE`. */
function samples(metrics, name) {
  const found = [];
  for (const line of metrics.split("\n")) {
    const [, sample, labels, value] = /^([a-z_]+)(?:\{(.*)\})? (\S+)/.exec(line) ?? [];
    if (sample !== name) continue;
    const pairs = [...(labels ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)];
    found.push({ labels: Object.fromEntries(pairs.map(([, key, text]) => [key, text])), value: Number(value) });
  }
  return found;
}

const sum = (metrics, name) => samples(metrics, name).reduce((total, { value }) => total + value, 0);

function meanText(metrics, name) {
  const number = sum(metrics, `${name}_count`);
  return number === 0 ? "none" : `${count(number)}, ${((1000 * sum(metrics, `${name}_sum`)) / number).toFixed(2)} ms on average`;
}

function showRequests(metrics) {
  const now = { time: performance.now(), counts: new Map() };
  const rows = samples(metrics, "simstore_requests_total").map(({ labels, value }) => {
    const key = `${labels.method} ${labels.route} ${labels.status}`;
    now.counts.set(key, value);
    const rate = last === undefined ? "" : ((1000 * (value - (last.counts.get(key) ?? 0))) / (now.time - last.time)).toFixed(1);
    return [labels.method, labels.route, labels.status, count(value), rate];
  });
  last = now;
  rows.sort(([methodA, routeA, statusA], [methodB, routeB, statusB]) => routeA.localeCompare(routeB) || methodA.localeCompare(methodB) || statusA.localeCompare(statusB));
  byId("health-requests").replaceChildren(table("", ["method", "path", "status", "answers", "a second"], rows));
}
