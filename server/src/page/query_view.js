// The view of queries: what is near a text, a fingerprint or a stored document, and the way from one document to the next.

import { byId, count, countOf, element, link, button } from "./elements.js";
import { getDocument, post, showFailure } from "./service.js";
import { comparison } from "./comparison.js";
import { drawThreshold, isWithin, scoreText, startThreshold } from "./threshold.js";
import { startVerdicts, verdictButtons } from "./verdicts.js";

/** Largest number of matches that the page asks for. */
const mostMatches = 1000;
/** Number of matches that are listed at a time. */
const matchesPerPage = 50;

let stats;
/**
 * The queries from the pasted one to the shown one. A step has a `side` (the text, fingerprint or id), a `label`, the `hash` of
 * its address, and the `answer` of the service.
 */
let trail = [];
/** The pasted queries, by their number in the address. */
const pasted = [];
let listed = matchesPerPage;
let running;
let answered;

const kinds = {
  text: { name: "a text", label: "The text" },
  fingerprint: { name: "a fingerprint", label: "The fingerprint, in hexadecimal digits" },
  id: { name: "a stored document", label: "Its id: a number or a name" },
};

const shownStep = () => trail[trail.length - 1];
/** Returns the last query that was answered; undefined if there was none. */
export const lastQuery = () => answered;
const hashOf = (id) => `#query/id/${encodeURIComponent(id)}`;
const chosenKind = () => byId("query-form").elements.kind.value;

/** Prepares the view for the store that the statistics describe. */
export function startQueries(storeStats) {
  stats = storeStats;
  const isSimilar = stats.kind === "similar-documents";
  const usable = Object.keys(kinds).filter((kind) => {
    if (kind === "text") return isSimilar || stats.profile !== "";
    return kind === "fingerprint" ? !isSimilar : stats.keeps_ids;
  });
  usable.forEach((kind, at) => {
    const input = Object.assign(element("input", ""), { type: "radio", name: "kind", value: kind, checked: at === 0 });
    input.addEventListener("change", showKind);
    byId("query-kind").append(element("label", "choice", input, ` ${kinds[kind].name} `));
  });
  showKind();
  byId("query-input").addEventListener("input", guessKind);
  byId("query-input").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("query-form").requestSubmit();
  });
  byId("query-form").addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  byId("more-matches").addEventListener("click", () => {
    listed += matchesPerPage;
    showMatches();
  });
  startThreshold(stats, () => {
    listed = matchesPerPage;
    showMatches();
  });
  startVerdicts(stats);
}

function showKind() {
  byId("query-label").textContent = kinds[chosenKind()].label;
  byId("query-input").rows = chosenKind() === "text" ? 6 : 1;
  byId("query-input").classList.toggle("digits", chosenKind() === "fingerprint");
}

/** Chooses “a fingerprint” if the input looks like one. */
function guessKind() {
  const choices = byId("query-form").elements.kind;
  const digits = stats.bits / 4;
  const isFingerprint = new RegExp(`^\\s*[0-9a-fA-F]{${digits}}\\s*$`).test(byId("query-input").value);
  if (isFingerprint && [...document.getElementsByName("kind")].some((input) => input.value === "fingerprint") && choices.value === "text") {
    choices.value = "fingerprint";
    showKind();
  }
}

function submit() {
  const [kind, input] = [chosenKind(), byId("query-input").value];
  const value = kind === "text" ? input : input.trim();
  if (value.trim() === "") {
    byId("query-input").focus();
    return;
  }
  const hash = kind === "id" ? hashOf(value) : `#query/pasted/${pasted.length}`;
  if (kind !== "id") pasted.push({ kind, value });
  trail = [];
  if (location.hash === hash) showQuery(["id", value]).catch(showFailure);
  else location.hash = hash;
}

/** Shortens a text for a link. */
function shorten(text) {
  const words = text.trim().replace(/\s+/g, " ");
  return [...words].length > 40 ? `${[...words].slice(0, 40).join("")}…` : words;
}

/** Shows the query of an address: `id/ID`, `pasted/NUMBER`, or none. */
export async function showQuery([kind, value]) {
  const hash = location.hash;
  const earlier = trail.findIndex((step) => step.hash === hash);
  if (earlier >= 0) trail = trail.slice(0, earlier + 1);
  else if (kind === "id" && value) trail.push({ side: { id: value }, label: value, hash });
  else if (kind === "pasted" && pasted[value]) {
    const query = pasted[value];
    trail = [{ side: { [query.kind]: query.value }, label: shorten(query.value), hash }];
  } else trail = [];
  await runStep();
}

async function runStep() {
  if (running) running.abort();
  const step = shownStep();
  byId("result").hidden = true;
  showTrail();
  if (!step) return;
  running = new AbortController();
  if (!step.answer) {
    const limited = (limit) => post("/query", { ...step.side, ...limit }, running.signal);
    try {
      step.answer = await limited({ limit: mostMatches });
    } catch (error) {
      // The service may allow fewer results.
      if (error.code !== "limit") throw error;
      step.answer = await limited({});
    }
  }
  listed = matchesPerPage;
  answered = step;
  await showResult(step);
}

function showTrail() {
  const steps = trail.map((step, at) => {
    const name = element("bdi", "", step.label || "(empty)");
    const made = at === trail.length - 1 ? element("span", "", name) : link(step.hash, name);
    if (at === trail.length - 1) made.setAttribute("aria-current", "step");
    return element("li", "", made);
  });
  byId("trail").querySelector("ol").replaceChildren(...steps);
  byId("trail").hidden = trail.length < 2;
}

async function showResult(step) {
  const { answer, side } = step;
  const title = byId("result-title");
  if (side.id === undefined) title.replaceChildren(side.text === undefined ? "Near the fingerprint " : "Near the pasted text", side.text === undefined ? element("code", "", side.fingerprint) : "");
  else title.replaceChildren("Near the stored document ", element("bdi", "name", side.id));
  byId("own-text").hidden = true;
  if (side.id !== undefined && stats.keeps_texts) showOwnText(side.id).catch(showFailure);
  const listedCount = answer.matches.length;
  byId("result-text").textContent = answer.truncated
    ? `${count(answer.total)} matches. The page has the nearest ${count(listedCount)}.`
    : answer.total === 0
      ? `Nothing is near: no ${side.id === undefined ? "" : "other "}document of the store is within ${stats.distance === null ? `similarity ${stats.similarity}` : `distance ${stats.distance}`}.`
      : "";
  byId("threshold-part").hidden = listedCount === 0;
  byId("result").hidden = false;
  showMatches();
  if (trail.length > 1) title.focus();
}

async function showOwnText(id) {
  const { text } = await getDocument(id);
  if (text === undefined || shownStep()?.side.id !== id) return;
  const details = byId("own-text");
  details.querySelector("summary").textContent = `Its text, ${countOf([...text].length, "character")}`;
  details.querySelector("div").textContent = text;
  details.hidden = false;
}

function showMatches() {
  const step = shownStep();
  if (!step || !step.answer) return;
  const { matches } = step.answer;
  const within = matches.filter(isWithin);
  drawThreshold(matches);
  byId("matches").replaceChildren(...within.slice(0, listed).map((match) => matchRow(step, match)));
  const rest = within.length - listed;
  byId("more-matches").hidden = rest <= 0;
  byId("more-matches").textContent = `Show ${count(Math.min(rest, matchesPerPage))} more of ${count(rest)}`;
}

/** Returns the stored document of a match as a side of a comparison: by its id, or by its fingerprint in a store without ids. */
const sideOf = (match) => (match.id === null ? { fingerprint: match.fingerprint } : { id: String(match.id) });

function matchRow(step, match) {
  const side = sideOf(match);
  const name = match.id === null ? element("code", "name", match.fingerprint) : element("bdi", "name", String(match.id));
  const head = element("div", "match", element("span", "score", scoreText(match)), " ", name);
  if (match.fingerprint !== undefined && match.id !== null) head.append(" ", element("code", "faint", match.fingerprint));
  const actions = element("div", "actions");
  const content = element("div", "content");
  if (stats.keeps_texts || match.fingerprint !== undefined) {
    const open = button("Compare", () => toggleComparison(open, content, step, side));
    open.setAttribute("aria-expanded", "false");
    actions.append(open);
  }
  if (match.id !== null) {
    const near = link(hashOf(side.id), "What is near it");
    near.className = "button";
    actions.append(near);
  }
  actions.append(verdictButtons(step.side, side, match));
  return element("li", "", head, actions, content);
}

async function toggleComparison(open, content, step, side) {
  if (content.childElementCount > 0) {
    content.replaceChildren();
    open.setAttribute("aria-expanded", "false");
    return;
  }
  try {
    showFailure(undefined);
    const answer = await post("/compare", { a: step.side, b: side });
    const names = [step.side.id ?? "the query", side.id ?? "stored"];
    content.replaceChildren(comparison(answer, names));
    open.setAttribute("aria-expanded", "true");
  } catch (error) {
    showFailure(error);
  }
}
