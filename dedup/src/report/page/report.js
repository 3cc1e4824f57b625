"use strict";
{
  const data = JSON.parse(document.getElementById("data").textContent);
  const rowsPerPage = 50;
  const byDistance = data.histogram.unit === "distance";

  const byId = (id) => document.getElementById(id);
  const count = (number) => number.toLocaleString("en");
  const countOf = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

  /** Makes an element with a class and children. A string becomes text, never markup. */
  function element(name, className, ...children) {
    const made = document.createElement(name);
    if (className) made.className = className;
    made.append(...children);
    return made;
  }

  /** Makes an element of SVG with attributes. */
  function shape(name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  /** Formats a similarity, or a distance in bits. */
  function scoreText(score) {
    if (score === undefined) return "";
    if (byDistance) return countOf(score, "bit");
    return score >= 1 ? "1" : score.toFixed(3);
  }

  // Head, warnings, counts, rules.
  byId("inputs").textContent = data.inputs.join(", ");
  byId("version").textContent = `simstore ${data.version}. This page makes no request; all its data is in the file.`;
  byId("warnings").hidden = data.warnings.length === 0;
  byId("warnings").querySelector("ul").append(...data.warnings.map((warning) => element("li", "", warning)));
  const pair = ([label, value]) => element("div", "", element("dt", "", label), element("dd", "", value));
  byId("counts").append(...data.counts.map(pair));
  byId("rules").append(...data.rules.map(pair));

  // The histogram: compared pairs above, removed documents below, both on a logarithmic scale.
  const { bins, pairs, found, removed, threshold } = data.histogram;
  const lowest = lowestBin();

  /** Returns the first bin on the chart. */
  function lowestBin() {
    if (byDistance) return 0;
    const counted = (pairs || removed).findIndex((number) => number > 0);
    const below = Math.max(0, Math.floor(threshold * 100) - 10);
    return Math.min(counted < 0 ? below : Math.max(counted, below - 20), below);
  }

  /** Returns the estimated number of pairs in a bin, with the pairs that the search misses; undefined if it finds too few of them. */
  function estimated(bin) {
    if (!pairs || !found || found[bin] < 0.2) return undefined;
    return pairs[bin] / found[bin];
  }

  const chart = { width: 900, left: 8, height: 110, gap: 46, top: 18 };

  function drawHistogram(chosen) {
    const shown = bins.length - lowest;
    const step = (chart.width - 2 * chart.left) / shown;
    const x = (bin) => chart.left + (bin - lowest) * step;
    const panels = pairs ? ["pairs", "removed"] : ["removed"];
    const height = chart.top + panels.length * (chart.height + chart.gap);
    const title = byDistance ? "Removed documents by distance" : "Pairs and removed documents by similarity";
    const svg = shape("svg", { viewBox: `0 0 ${chart.width} ${height}`, role: "img", "aria-label": title });
    panels.forEach((panel, at) => {
      const base = chart.top + at * (chart.height + chart.gap) + chart.height;
      const numbers = panel === "pairs" ? pairs : removed;
      const most = Math.max(1, ...numbers.slice(lowest), ...(panel === "pairs" ? bins.map((_, bin) => (bin < lowest ? 0 : estimated(bin) || 0)) : []));
      const bar = (number) => (chart.height * Math.log(1 + number)) / Math.log(1 + most);
      const head = panel === "pairs" ? "Pairs of texts compared" : byDistance ? "Removed documents, by distance to the representative" : "Removed documents, by similarity to the representative";
      svg.append(shape("text", { x: chart.left, y: base - chart.height - 5 }, `${head} (at most ${count(Math.round(most))} in a bar)`));
      for (let bin = lowest; bin < bins.length; bin++) {
        const all = panel === "pairs" ? estimated(bin) : undefined;
        const range = { x: x(bin) + 0.5, width: Math.max(step - 1, 0.5) };
        if (all > numbers[bin] + 0.5) {
          svg.append(shape("rect", { ...range, y: base - bar(all), height: bar(all), class: "bar-missing" }));
        }
        const isNear = byDistance ? bins[bin] <= threshold : bins[bin] >= threshold - 1e-9;
        const colour = panel === "removed" ? "bar-removed" : isNear ? "bar-above" : "bar-below";
        const rect = shape("rect", { ...range, y: base - bar(numbers[bin]), height: bar(numbers[bin]), class: colour });
        rect.append(shape("title", {}, `${binText(bin)}: ${count(numbers[bin])}`));
        svg.append(rect);
      }
      svg.append(shape("line", { x1: chart.left, x2: chart.width - chart.left, y1: base, y2: base, class: "axis" }));
      const every = byDistance ? Math.ceil(shown / 20) : 5;
      for (let bin = lowest; bin < bins.length; bin++) {
        const label = byDistance ? bins[bin] : bin / 100;
        if (bin % every === 0) svg.append(shape("text", { x: x(bin) + step / 2, y: base + 15, "text-anchor": "middle" }, String(label)));
      }
      const line = (value, name) => {
        const bin = byDistance ? value + 1 : value * 100;
        svg.append(shape("line", { x1: x(bin), x2: x(bin), y1: base - chart.height, y2: base, class: name }));
      };
      line(threshold, "threshold");
      if (chosen !== undefined && Math.abs(chosen - threshold) > 1e-9) line(chosen, "chosen");
    });
    byId("histogram").querySelector("figure").replaceChildren(svg, caption());
  }

  function caption() {
    const swatch = (name, text) => [element("span", `swatch swatch-${name}`), text];
    const parts = byDistance ? [] : swatch("above", "similar").concat(swatch("below", "below the threshold"));
    if (found && pairs) parts.push(...swatch("missing", "estimated number, with pairs that the search does not find"));
    parts.push(...swatch("removed", "removed"));
    const scale = "Heights are logarithmic. The line is the threshold of the run.";
    return element("figcaption", "", element("div", "", ...(pairs || byDistance ? parts : swatch("removed", "removed"))), element("div", "", scale));
  }

  function binText(bin) {
    if (byDistance) return bin === bins.length - 1 ? `more than ${countOf(bins[bin] - 1, "bit")}` : countOf(bins[bin], "bit");
    return bin === bins.length - 1 ? "1" : `${bins[bin].toFixed(2)} to ${(bins[bin] + 0.01).toFixed(2)}`;
  }

  const sum = (numbers, from, to) => numbers.slice(from, to).reduce((total, number) => total + number, 0);

  /** Says what another threshold would change, as far as this run shows it. */
  function thresholdText(chosen) {
    const total = sum(removed, 0, removed.length);
    if (Math.abs(chosen - threshold) < 1e-9) {
      return `${byDistance ? "Distance" : "Similarity"} ${chosen} is the threshold of this run. Move the slider to see another one.`;
    }
    if (byDistance) {
      const kept = sum(removed, chosen + 1, removed.length);
      return `At ${countOf(chosen, "bit")}: ${count(kept)} of the ${count(total)} removed documents are farther from their representative.`;
    }
    const [low, high] = [chosen, threshold].map((value) => Math.round(value * 100)).sort((a, b) => a - b);
    if (chosen > threshold) {
      const kept = sum(removed, 0, high);
      return `At ${chosen.toFixed(2)}: ${count(kept)} of the ${count(total)} removed documents are less similar than that to their representative.`;
    }
    if (!pairs) return "";
    const more = sum(pairs, low, high);
    const estimates = bins.map((_, bin) => estimated(bin)).slice(low, high);
    const all = estimates.every((number) => number !== undefined) ? Math.round(sum(estimates, 0, estimates.length)) : undefined;
    const estimate = all === undefined ? "the search misses most of the others" : `about ${count(all)} with those that the search misses`;
    return `From ${chosen.toFixed(2)} to ${threshold}: ${countOf(more, "compared pair")}, ${estimate}. Each of them can remove one more document at most. Run again with this threshold to find them.`;
  }

  function histogramTable() {
    const heads = [byDistance ? "distance" : "similarity"].concat(pairs ? ["pairs compared", "share found, at least"] : [], ["removed documents"]);
    const body = [];
    for (let bin = bins.length - 1; bin >= lowest; bin--) {
      const cells = [binText(bin)].concat(pairs ? [count(pairs[bin]), found ? found[bin].toFixed(3) : ""] : [], [count(removed[bin])]);
      body.push(element("tr", "", ...cells.map((cell) => element("td", "", cell))));
    }
    const head = element("tr", "", ...heads.map((cell) => element("th", "", cell)));
    return element("table", "", element("thead", "", head), element("tbody", "", ...body));
  }

  byId("histogram-title").textContent = byDistance ? "Distances" : "Similarities";
  const slider = byId("threshold");
  slider.min = byDistance ? 0 : lowest / 100;
  slider.max = byDistance ? threshold : 1;
  slider.step = byDistance ? 1 : 0.01;
  slider.value = threshold;
  slider.labels[0].textContent = "Another threshold";
  function showThreshold() {
    const chosen = slider.value === String(threshold) ? threshold : Number(slider.value);
    byId("threshold-row").querySelector("output").textContent = byDistance ? countOf(chosen, "bit") : String(chosen);
    byId("threshold-text").textContent = thresholdText(chosen);
    drawHistogram(chosen);
  }
  slider.addEventListener("input", showThreshold);
  showThreshold();
  byId("histogram-numbers").append(histogramTable());

  // Clusters.
  const orders = [
    ["size", "largest first", (a, b) => b.size - a.size || a.n - b.n],
    ["worst", byDistance ? "farthest document first" : "least similar document first", (a, b) => ((a.worst ?? 1) - (b.worst ?? 1)) * (byDistance ? -1 : 1) || b.size - a.size || a.n - b.n],
    ["input", "order of the input", (a, b) => a.n - b.n],
  ];
  byId("order").append(...orders.map(([value, text]) => Object.assign(element("option", "", text), { value })));
  let page = 0;
  let selected = data.clusters;

  const kept = data.has_kept ? "kept" : "first";
  const missing = data.cluster_count - data.clusters.length;
  const hint = data.comparisons.length > 0 ? " Open a cluster to compare its documents: first the largest clusters and a random sample of the others have comparisons." : data.has_texts && data.cluster_count > 0 ? " There is no room for comparisons, or the texts are not available." : "";
  byId("cluster-text").textContent = `${countOf(data.cluster_count, "cluster")}.${missing > 0 ? ` The page lists the ${count(data.clusters.length)} largest and a sample; ${count(missing)} others are not on it.` : ""}${hint}`;

  function selectClusters() {
    const wanted = byId("search").value.trim().toLowerCase();
    const has = (name) => name.toLowerCase().includes(wanted);
    const isWanted = (cluster) => has(cluster.id) || (cluster.members || []).some((member) => has(member.id));
    selected = wanted === "" ? data.clusters.slice() : data.clusters.filter(isWanted);
    selected.sort(orders.find(([value]) => value === byId("order").value)[2]);
    page = 0;
    byId("cluster-found").textContent = wanted === "" ? "" : `${countOf(selected.length, "cluster")} with “${wanted}” in a listed name.`;
    showClusters();
  }

  function showClusters() {
    const start = page * rowsPerPage;
    byId("clusters").replaceChildren(...selected.slice(start, start + rowsPerPage).map((cluster) => element("li", "", clusterRow(cluster))));
    const pages = Math.max(1, Math.ceil(selected.length / rowsPerPage));
    const button = (text, target) => {
      const made = element("button", "", text);
      made.type = "button";
      made.disabled = target < 0 || target >= pages || target === page;
      made.addEventListener("click", () => {
        page = target;
        showClusters();
        byId("cluster-found").scrollIntoView({ block: "nearest" });
      });
      return made;
    };
    byId("pages").replaceChildren(
      button("First", 0), button("Previous", page - 1),
      element("span", "", `page ${count(page + 1)} of ${count(pages)}`),
      button("Next", page + 1), button("Last", pages - 1),
    );
    byId("pages").hidden = pages === 1;
  }

  /** Makes a `details` element, filled when it is first opened. */
  function opening(className, head, fill) {
    const details = element("details", className, head);
    details.addEventListener("toggle", () => {
      if (details.open && details.childElementCount === 1) details.append(fill());
    });
    return details;
  }

  function clusterRow(cluster) {
    const worst = cluster.worst === undefined ? "" : `${byDistance ? "up to" : "down to"} ${scoreText(cluster.worst)}`;
    const head = element("summary", "",
      element("span", "size", countOf(cluster.size, "document")), " ",
      element("span", "score", worst), " ",
      element("bdi", "name", cluster.id),
      cluster.stored === undefined ? "" : element("span", "place", ` in the store ${cluster.stored}`));
    return opening("cluster", head, () => clusterContent(cluster));
  }

  function clusterContent(cluster) {
    const content = element("div", "");
    const place = cluster.place ? ` (${cluster.place})` : "";
    const role = cluster.stored !== undefined ? "stored document" : data.has_kept ? "kept document" : "first document; none is kept";
    content.append(element("p", "faint", `Cluster ${cluster.n} of the tables; ${role}: `, element("bdi", "name", cluster.id), place));
    for (const member of cluster.members || []) content.append(memberRow(cluster, member));
    if (cluster.more > 0) content.append(element("p", "faint", `${countOf(cluster.more, "further document")}, not on this page.`));
    return content;
  }

  function memberRow(cluster, member) {
    const parts = [element("span", "score", scoreText(member.score)), " ", element("bdi", "name", member.id)];
    if (member.place) parts.push(element("span", "place", ` ${member.place}`));
    if (member.diff === undefined) return element("div", "plain", ...parts);
    return opening("member", element("summary", "", ...parts), () => comparisonView(cluster, member));
  }

  /** Shows two texts side by side: the kept one left, the removed one right. */
  function comparisonView(cluster, member) {
    const { segments, cut, more } = data.comparisons[member.diff];
    const view = element("div", "comparison");
    const row = (className, left, right) => element("div", `passage ${className}`, element("div", "", ...left), element("div", "", ...right));
    view.append(row("heads", [`${kept}: `, element("bdi", "name", cluster.id)], ["removed: ", element("bdi", "name", member.id)]));
    let [left, right] = [[], []];
    // White space before a passage is outside its mark.
    const marked = (name, passage) => {
      const words = passage.trimStart();
      const space = passage.slice(0, passage.length - words.length);
      return words === "" ? [] : [space, element(name, "", words)];
    };
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
    const note = (text) => view.append(element("div", "note", text));
    if (!segments.some(Array.isArray)) note(cut ? "No difference in the compared part except white space." : "No difference except white space.");
    if (more > 0) note(`${countOf(more, "more differing passage")}, not on this page`);
    if (cut) note("Only the first 32 KiB of each text were compared.");
    return view;
  }

  byId("search").addEventListener("input", selectClusters);
  byId("order").addEventListener("change", selectClusters);
  byId("cluster-search").addEventListener("submit", (event) => event.preventDefault());
  selectClusters();
}
