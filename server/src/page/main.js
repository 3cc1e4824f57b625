// The page of the service: tabs, and the state that all views share.

import { byId, count } from "./elements.js";
import { get, showFailure } from "./service.js";
import { hideHealth, showHealth } from "./health_view.js";
import { showQuery, startQueries } from "./query_view.js";
import { showStore } from "./store_view.js";

const views = {
  query: { show: showQuery },
  store: { show: showStore },
  health: { show: showHealth, hide: hideHealth },
};
/** Milliseconds between two looks at a store that is being opened. */
const openingInterval = 1000;
let shown;

/** Decodes a part of an address. A malformed part stays as it is. */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Shows the view that the address names: `#query`, `#store/SEGMENT/TABLE/BLOCK`, `#health`. */
async function showView() {
  const [name, ...path] = location.hash.slice(1).split("/");
  // The link to the content leaves the view as it is.
  if (name === "content" && shown !== undefined) return;
  const view = Object.hasOwn(views, name) ? name : "query";
  if (shown !== view && shown !== undefined && views[shown].hide) views[shown].hide();
  shown = view;
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.dataset.view !== view;
  for (const tab of document.querySelectorAll("header nav a")) {
    if (tab.dataset.view === view) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
  showFailure(undefined);
  try {
    await views[view].show(path.map(decode));
  } catch (error) {
    showFailure(error);
  }
}

/** Reads the statistics, as soon as the store is open. */
async function firstStats() {
  for (;;) {
    try {
      return await get("/stats");
    } catch (error) {
      if (error.code !== "not-ready" && error.code !== "no-answer") throw error;
      showFailure(error);
      await new Promise((resolve) => setTimeout(resolve, openingInterval));
    }
  }
}

async function start() {
  const stats = await firstStats();
  const kind = stats.kind === "similar-documents" ? `similar documents, from similarity ${stats.similarity}` : `fingerprints of ${stats.bits} bits, up to distance ${stats.distance}`;
  byId("store-line").textContent = `A store of ${kind}: ${count(stats.documents)} documents${stats.read_only ? ", only read by this service" : ""}.`;
  byId("version").textContent = `simstore ${stats.version}`;
  startQueries(stats);
  addEventListener("hashchange", showView);
  await showView();
}

start().catch(showFailure);
