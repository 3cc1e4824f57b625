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
    const parts = [table("Fingerprints in the order of the table", ["", "code", "bits: equal to the one before, first differing bit, rest", "original"], rows)];
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
  const before = at === 0 ? undefined : block.values[at - 1].permuted;
  return [String(at), codeText(details, value, at), bitRow(value.permuted, before), element("code", "", value.original)];
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

/** Shows the bits of a fingerprint in three parts: equal to the one before, the first that differs, and the rest. */
function bitRow(hex, before) {
  const bits = bitsOf(hex).join("");
  const made = element("code", "bit-row");
  if (before === undefined) {
    made.append(bits);
    return made;
  }
  const other = bitsOf(before).join("");
  let first = 0;
  while (first < bits.length && bits[first] === other[first]) first += 1;
  made.append(element("span", "equal", bits.slice(0, first)), element("b", "", bits.slice(first, first + 1)), bits.slice(first + 1));
  return made;
}
