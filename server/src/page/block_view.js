// One block of a table: the first fingerprint as it is, then code by code.

import { count, countOf, describe, element, link, table } from "./elements.js";
import { bitsOf } from "./comparison.js";

/** Number of fingerprints that are listed at first. */
const firstRows = 64;

export function blockView(segment, details, block) {
  const address = (number) => `#store/${segment}/${details.table}/${number}`;
  const title = element("h2", "", `Block ${count(block.block)} of table ${details.table}, segment ${segment}`);
  const step = (text, number) => {
    if (number < 0 || number >= details.blocks) return element("span", "button disabled", text);
    const made = link(address(number), text);
    made.className = "button";
    return made;
  };
  const choice = Object.assign(element("input", ""), { type: "number", min: 0, max: details.blocks - 1, value: block.block, id: "block-number", required: true });
  const form = element("form", "row", step("Previous", block.block - 1), step("Next", block.block + 1), element("label", "", "Block ", choice), element("span", "faint", `of ${count(details.blocks)}, from 0`), element("button", "", "Open"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    location.hash = address(choice.value);
  });
  const facts = element("dl", "rules");
  const width = { "elias-fano": "lower bits of each fingerprint", "prefix-lines": "bits of each fingerprint after its prefix" }[details.codec] ?? "bits of a restart point";
  describe(facts, [
    ["place", `offset ${count(block.offset)}, ${countOf(block.bytes, "byte")}`],
    ["fingerprints", `${count(block.fingerprints)}, ${((8 * block.bytes) / Math.max(1, block.fingerprints)).toFixed(2)} bits each`],
    [width, String(block.width)],
  ]);
  const list = element("div", "wide codes");
  const showRows = (most) => {
    const rows = block.values.slice(0, most).map((value, at) => valueRow(details, block, value, at));
    const parts = [table("Fingerprints in the order of the table", ["", "code", "bits: equal bits are faint, differing ones marked", "original"], rows)];
    const rest = block.values.length - most;
    if (rest > 0) {
      const all = element("button", "", `Show ${count(rest)} more`);
      all.addEventListener("click", () => showRows(block.values.length));
      parts.push(element("p", "", all));
    }
    list.replaceChildren(...parts);
  };
  showRows(firstRows);
  return element("section", "", title, form, facts, list);
}

function valueRow(details, block, value, at) {
  // A code of all-differences may refer to a fingerprint some places before.
  const reference = block.values[at - 1 - (value.coded?.back ?? 0)];
  const marksAll = value.coded !== null && value.coded.differing !== null;
  return [String(at), codeText(details, value, at), bitRow(value.permuted, reference?.permuted, marksAll), element("code", "", value.original)];
}

/** Says how a fingerprint is coded. */
function codeText(details, { coded, differing_bit: bit }, at) {
  const hasCodes = ["all-differences", "first-difference", "gap"].includes(details.codec);
  if (at === 0) return "as it is";
  if (hasCodes && coded === null) return "as it is: restart point";
  if (details.codec === "all-differences") {
    if (coded.differing === null) return `gap, top bit 2^${coded.h}`;
    const more = coded.differing > 0 ? ` and ${coded.differing} more` : "";
    return `differs in 2^${coded.h}${more}${coded.back > 0 ? `, from ${coded.back + 1} before` : ""}`;
  }
  if (details.codec === "gap") return `difference, top bit ${bit}`;
  return `differs from bit ${bit} on`;
}

/**
 * Shows the bits of a fingerprint. The first bit that differs from the reference is marked, the equal bits before it are faint. With
 * `marksAll`, all differing bits are marked, and the other bits are faint.
 */
function bitRow(hex, reference, marksAll) {
  const bits = bitsOf(hex);
  const made = element("code", "bit-row");
  const other = reference === undefined ? undefined : bitsOf(reference);
  const first = other === undefined ? 0 : bits.findIndex((bit, at) => bit !== other[at]);
  const kindOf = (at) => {
    if (other === undefined) return "";
    if (at === first || (marksAll && bits[at] !== other[at])) return "b";
    return at < first || marksAll ? "equal" : "";
  };
  for (let at = 0; at < bits.length;) {
    const [from, kind] = [at, kindOf(at)];
    while (at < bits.length && kindOf(at) === kind) at += 1;
    const part = bits.slice(from, at).join("");
    made.append(kind === "b" ? element("b", "", part) : element("span", kind, part));
  }
  return made;
}
