// Verdicts on pairs, and their export as labelled pairs for `simstore evaluate`.

import { byId, button, countOf, element } from "./elements.js";
import { getDocument, showFailure } from "./service.js";

let keepsTexts;
/** Verdicts by the key of their pair. A verdict has both sides, the score of the match, and a label. */
const verdicts = new Map();
let isSaved = true;

export function startVerdicts(stats) {
  keepsTexts = stats.keeps_texts;
  byId("export-verdicts").addEventListener("click", () => exportVerdicts().catch(showFailure));
  addEventListener("beforeunload", (event) => {
    if (!isSaved) event.preventDefault();
  });
}

/** Key of a pair of sides, in either order. */
const keyOf = (a, b) => JSON.stringify([a, b].map((side) => JSON.stringify(side)).sort());

/** Makes the buttons for a verdict on a pair. */
export function verdictButtons(a, b, match) {
  const key = keyOf(a, b);
  const group = element("span", "verdict");
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", "Your verdict");
  const choices = [[true, "Same"], [false, "Not the same"]];
  const show = () => {
    [...group.children].forEach((made, at) => made.setAttribute("aria-pressed", String(verdicts.get(key)?.label === choices[at][0])));
  };
  for (const [label, text] of choices) {
    group.append(button(text, () => {
      if (verdicts.get(key)?.label === label) verdicts.delete(key);
      else verdicts.set(key, { a, b, label, score: match.similarity ?? match.distance, isDistance: match.distance !== undefined });
      isSaved = verdicts.size === 0;
      show();
      showCounts();
    }));
  }
  show();
  return group;
}

function showCounts() {
  const same = [...verdicts.values()].filter((verdict) => verdict.label).length;
  byId("verdicts").hidden = verdicts.size === 0;
  const state = isSaved ? "" : " They are in the memory of this page only.";
  byId("verdict-text").textContent = `${countOf(verdicts.size, "pair")}: ${same} the same, ${verdicts.size - same} not the same.${state}`;
  byId("export-text").textContent = keepsTexts ? "A file for simstore evaluate." : "The store keeps no texts: add the fields text_a and text_b to the file, then simstore evaluate reads it.";
}

/** Returns the text of a side; undefined if the service does not have it. */
async function textOf(side, known) {
  if (side.id === undefined || !keepsTexts) return side.text;
  if (!known.has(side.id)) known.set(side.id, (await getDocument(side.id)).text);
  return known.get(side.id);
}

/** Saves a line of JSON for each verdict. */
async function exportVerdicts() {
  showFailure(undefined);
  const known = new Map();
  const lines = [];
  for (const { a, b, label, score, isDistance } of verdicts.values()) {
    const pair = { text_a: await textOf(a, known), text_b: await textOf(b, known), label, id_a: a.id, id_b: b.id };
    Object.assign(pair, isDistance ? { fingerprint_a: a.fingerprint, fingerprint_b: b.fingerprint, distance: score } : { similarity: score });
    lines.push(`${JSON.stringify(pair)}\n`);
  }
  const address = URL.createObjectURL(new Blob(lines, { type: "application/x-ndjson" }));
  const save = Object.assign(element("a", ""), { href: address, download: "verdicts.jsonl" });
  save.click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
  isSaved = true;
  showCounts();
}
