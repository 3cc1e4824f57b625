// Where the last query looked: its probes in each table of each segment.

import { count, countOf, element, table } from "./elements.js";
import { post } from "./service.js";

/** Returns a section about a query. `side` is its text, fingerprint or id. */
export async function traceView({ side, label }) {
  const { fingerprints, segments } = await post("/trace", side);
  const rows = segments.flatMap(({ number, tables }) => tables.map((made) => [
    `segment ${number}, table ${made.table}`, count(made.probes), count(made.filtered), count(made.empty),
    count(made.probes - made.filtered - made.empty), count(made.blocks), count(made.compared), count(made.found),
  ]));
  const heads = ["", "probes", "ended by the filter", "no such prefix", "prefix found", "blocks read", "fingerprints compared", "within the distance"];
  const looked = fingerprints === 1 ? "one fingerprint" : `${countOf(fingerprints, "fingerprint")}, the bands of the text's signature`;
  const text = `The query looks up ${looked}. A probe is one prefix: that of the query, or with some bits flipped. Only fingerprints that have the prefix of a probe are compared. Several tables may find the same fingerprint.`;
  const title = element("h2", "", "Where the last query looked: ", element("bdi", "name", label));
  return element("section", "", title, element("p", "faint", text), element("div", "wide", table("", heads, rows)));
}
