// The view of the store: its segments, the tables of one segment, one table, and one block.

import { agoText, bar, byId, bytesText, count, describe, element, link, table } from "./elements.js";
import { get } from "./service.js";
import { blockView } from "./block_view.js";
import { codeHistogram } from "./code_histogram.js";
import { lastQuery } from "./query_view.js";
import { traceView } from "./trace_view.js";

/** Shows the store, and the segment, table and block of the address, if it names them. */
export async function showStore([segment, tableNumber, block]) {
  const [stats, segments] = await Promise.all([get("/stats"), get("/segments")]);
  describeStore(stats);
  byId("segments").replaceChildren(segmentTable(segments, segment, stats));
  const found = segments.find(({ number }) => String(number) === segment);
  const parts = ["segment", "table", "block"].map(byId);
  parts.forEach((part) => part.replaceChildren());
  const query = segment === undefined && segments.length > 0 ? lastQuery() : undefined;
  byId("trace").replaceChildren(...(query ? [await traceView(query)] : []));
  if (segment === undefined) return;
  if (!found) {
    parts[0].append(element("p", "warning", `There is no segment ${segment}: it was merged into another one. Choose a segment above.`));
    return;
  }
  parts[0].append(tablesView(found, tableNumber));
  if (tableNumber === undefined) {
    show(parts[0]);
    return;
  }
  const path = `/segments/${found.number}/tables/${encodeURIComponent(tableNumber)}`;
  const details = await get(path);
  parts[1].append(tableView(found, details));
  if (block === undefined) {
    show(parts[1]);
    return;
  }
  parts[2].append(blockView(found.number, details, await get(`${path}/blocks/${encodeURIComponent(block)}`)));
  show(parts[2]);
}

/** Scrolls to a part, and moves the focus to its title, so that the keyboard continues there. */
function show(part) {
  const title = part.querySelector("h2");
  title.tabIndex = -1;
  title.focus({ preventScroll: true });
  part.scrollIntoView({ block: "start" });
}

function describeStore(stats) {
  describe(byId("store-counts"), [
    ["documents", count(stats.documents)],
    ["size of the segments", bytesText(stats.bytes)],
    ["bytes for each document", stats.documents === 0 ? "—" : (stats.bytes / stats.documents).toFixed(1)],
    ["memory besides mapped files", bytesText(stats.memory)],
    ["pairs in memory, not in segments", count(stats.memtable_entries)],
  ]);
  const question = stats.distance === null
    ? [["similarity", `${stats.similarity} or more; a document just there is found with probability ${stats.recall}`], ["texts", stats.keeps_texts ? "kept: similarities are exact" : "not kept: similarities are estimates"]]
    : [["distance", `up to ${stats.distance} of ${stats.bits} bits`], ["ids", stats.keeps_ids ? "kept" : "not kept"]];
  describe(byId("store-rules"), [...question, ["text profile", stats.profile || "none: fingerprints only"], ["codec", stats.codec], ["plan of new segments", stats.plan]]);
}

function segmentTable(segments, chosen, stats) {
  if (segments.length === 0) return element("p", "", `There is no segment yet: all documents are in memory and in the log (${bytesText(stats.log_bytes)}).`);
  const largest = Math.max(...segments.map(({ bytes }) => bytes));
  const rows = segments.map((segment) => [
    marked(link(`#store/${segment.number}`, `segment ${segment.number}`), String(segment.number) === chosen),
    agoText(segment.age_seconds), count(segment.fingerprints), count(segment.pairs), count(segment.tombstones), String(segment.tables.length),
    bytesText(segment.bytes), bar(segment.bytes / largest),
  ]);
  return table("", ["segment", "written", "fingerprints", "pairs with ids", "deletions", "tables", "size", "share of the largest"], rows);
}

function marked(anchor, isChosen) {
  if (isChosen) anchor.setAttribute("aria-current", "true");
  return anchor;
}

function tablesView(segment, chosen) {
  const rows = segment.tables.map((made) => [
    marked(link(`#store/${segment.number}/${made.table}`, `table ${made.table}`), String(made.table) === chosen),
    String(made.prefix_bits), String(made.flips), count(made.blocks), bytesText(made.bytes), made.bits_per_fingerprint.toFixed(2),
    made.floor_bits_per_fingerprint.toFixed(2), boundBar(made),
  ]);
  const heads = ["table", "prefix bits", "flipped bits", "blocks", "size", "bits each", "lower bound", "bits each, bound marked"];
  const text = `Plan ${segment.plan}: each table has all fingerprints of the segment, sorted by other bits. A query looks up the prefix, and prefixes with some bits flipped. The lower bound is the least that as many random fingerprints can take.`;
  return element("section", "", element("h2", "", `Tables of segment ${segment.number}`), element("p", "faint", text), element("div", "wide", table("", heads, rows)));
}

/** Makes a bar of the bits of each fingerprint, with a line at the lower bound. */
function boundBar({ bits_per_fingerprint: bits, floor_bits_per_fingerprint: bound }) {
  const most = Math.max(bits, bound, 1) * 1.05;
  const made = bar(bits / most);
  const line = made.firstElementChild.cloneNode();
  line.setAttribute("x", (100 * bound) / most - 0.75);
  line.setAttribute("width", 1.5);
  line.setAttribute("y", 0);
  line.setAttribute("height", 14);
  line.setAttribute("class", "bar-bound");
  made.append(line);
  return made;
}

/** Returns the order of a table's bits, such as `32-63 | 0-31`: the positions of the prefix bits, then of the others. */
function bitOrder({ permutation, prefix_bits: prefix }) {
  const ranges = (bits) => {
    const made = [];
    for (const bit of bits) {
      const last = made[made.length - 1];
      if (last && last[1] + 1 === bit) last[1] = bit;
      else made.push([bit, bit]);
    }
    return made.map(([first, last]) => (first === last ? String(first) : `${first}-${last}`)).join(" ");
  };
  return [permutation.slice(0, prefix), permutation.slice(prefix)].filter((bits) => bits.length > 0).map(ranges).join(" | ");
}

function tableView(segment, details) {
  const facts = element("dl", "rules");
  const restarts = details.span > 0 ? `, with a restart point every ${count(details.span)} fingerprints` : "";
  describe(facts, [
    ["fingerprints", count(details.fingerprints)],
    ["order of bits", bitOrder(details)],
    ["codec", `${details.codec}${restarts}`],
    ...(details.lines === null ? [] : [["prefix lines", `${count(details.lines)} with ${details.key_bits} bits of each fingerprint; ${count(details.dividing_lines)} more divide others`]]),
    ["blocks", `${count(details.blocks)} of ${count(details.block_size)} bytes, ${(details.fingerprints / Math.max(1, details.blocks)).toFixed(1)} fingerprints each`],
    ["memory", bytesText(details.memory)],
  ]);
  const open = details.blocks === 0 ? "" : element("p", "", link(`#store/${segment.number}/${details.table}/0`, "Open the first block"));
  return element("section", "", element("h2", "", `Table ${details.table} of segment ${segment.number}`), facts, codeHistogram(details), open);
}
