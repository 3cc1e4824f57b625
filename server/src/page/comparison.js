// A comparison of two texts word by word, or of two fingerprints bit by bit.

import { countOf, element } from "./elements.js";

/** Shows the answer of `/compare`. `names` are the names of both sides. */
export function comparison(answer, names) {
  return answer.fingerprints === undefined ? textComparison(answer, names) : bitComparison(answer, names);
}

const row = (className, left, right) => element("div", `passage ${className}`, element("div", "", ...left), element("div", "", ...right));

/** Marks a passage. White space before it is outside the mark. */
function marked(name, passage) {
  const words = passage.trimStart();
  const space = passage.slice(0, passage.length - words.length);
  return words === "" ? [] : [space, element(name, "", words)];
}

/** Shows two texts side by side, the first one left. */
function textComparison({ similarity, segments, cut }, names) {
  const view = element("div", "comparison");
  const note = (text) => view.append(element("div", "note", text));
  note(`Similarity ${similarity >= 1 ? "1" : similarity.toFixed(3)}`);
  view.append(row("heads", [element("bdi", "name", names[0])], [element("bdi", "name", names[1])]));
  let [left, right] = [[], []];
  const end = () => {
    for (const side of [left, right]) if (typeof side[0] === "string") side[0] = side[0].trimStart();
    if (left.length > 0 || right.length > 0) view.append(row("", left, right));
    [left, right] = [[], []];
  };
  for (const segment of segments) {
    if (typeof segment === "number") {
      end();
      view.append(element("div", "skipped", `${countOf(segment, "equal word")} left out`));
    } else if (typeof segment === "string") {
      left.push(segment);
      right.push(segment);
    } else {
      left.push(...marked("del", segment[0]));
      right.push(...marked("ins", segment[1]));
    }
  }
  end();
  if (!segments.some(Array.isArray)) note(cut ? "No difference in the compared part except white space." : "No difference except white space.");
  if (cut) note("Only the first 32 KiB of each text were compared.");
  return view;
}

/** Returns the bits of a fingerprint, the most significant one first. */
export const bitsOf = (hex) => [...hex].flatMap((digit) => [...Number.parseInt(digit, 16).toString(2).padStart(4, "0")]);

/** Shows two fingerprints as a row of cells, one for each bit, with a mark at each bit that differs. */
function bitComparison({ distance, fingerprints }, names) {
  const [a, b] = fingerprints.map(bitsOf);
  const differing = a.flatMap((bit, at) => (bit === b[at] ? [] : [at]));
  const where = differing.length === 0 ? "No bit differs." : `${differing.length === 1 ? "Bit" : "Bits"} ${differing.join(", ")} differ${differing.length === 1 ? "s" : ""}. Bit 0 is the most significant one.`;
  const cells = element("div", "bits");
  cells.setAttribute("role", "img");
  cells.setAttribute("aria-label", where);
  for (let first = 0; first < a.length; first += 8) {
    const group = element("div", "byte", element("span", "bit-number", String(first)));
    for (let at = first; at < first + 8; at++) {
      const cell = (bit) => element("span", bit === "1" ? "set" : "unset", bit);
      const isEqual = a[at] === b[at];
      const column = element("span", isEqual ? "bit" : "bit differs", cell(a[at]), cell(b[at]), element("span", "mark", isEqual ? "" : "▲"));
      column.title = `bit ${at}: ${a[at]} and ${b[at]}`;
      group.append(column);
    }
    cells.append(group);
  }
  const name = (text, hex) => element("div", "", element("bdi", "name", text), " ", element("code", "", hex));
  const heads = element("div", "bit-heads", name(`above: ${names[0]}`, fingerprints[0]), name(`below: ${names[1]}`, fingerprints[1]));
  return element("div", "comparison", element("div", "note", `Distance ${countOf(distance, "bit")}`), heads, cells, element("p", "faint where", where));
}
