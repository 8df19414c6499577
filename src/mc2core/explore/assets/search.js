// -- search ----------------------------------------------------------------------------------------------------
const FIRST_FOUND = 6, FIRST_VALUES = 8, MAX_COLUMNS_FOUND = 2;
// the text comes beside what is seen, and what was found stays lit
const opens = (row, marks) => () => { choose(groupOf.get(row)); openDocument(row.document, marks); };
// documents that were found stand out on the map
const light = (rows) => {
  const before = hits;
  hits = rows?.length ? new Set(rows.map((row) => row.document)) : null;
  if (hits || before) drawMap();
};
// words, and phrases in quotation marks
const partsOf = (asked) => (asked.match(/"[^"]+"|[^\s"]+/g) || []).map((part) => part.replaceAll('"', "").trim()).filter((part) => part);
// A part of what is searched is found where a word begins with it; signs, and letters of scripts without spaces, anywhere.
const beginning = (part) => `${/^[\p{L}\p{N}]/u.test(part) && !UNSPACED.test(part) ? "(?<![\\p{L}\\p{N}])" : ""}${part.replaceAll(/[.*+?^${}()|[\]\\/]/g, "\\$&")}`;
const search = () => {
  const asked = $("search").value.trim().toLowerCase(), results = $("results"), parts = partsOf(asked);
  results.replaceChildren();
  if (asked.length < 2 || !parts.length) { light(null); return tally(asked, []); }
  const kind = (name, made) => {
    if (!made.length) return;
    const list = element("ul", null, { className: "list" }), line = element("li");
    list.append(...made);
    line.append(list);
    results.append(element("li", name, { className: "kind" }), line);
    shorten(list, FIRST_FOUND, "result", `found ${name} ${asked}`);
  };
  // all parts, in any order
  const patterns = parts.map((part) => [part, new RegExp(beginning(part), "iu")]);
  const has = (text) => { const lower = text.toLowerCase(); return patterns.every(([part, pattern]) => lower.includes(part) && pattern.test(text)); };
  const begins = (list) => parts.every((part) => (list || []).some((one) => one.word.toLowerCase().startsWith(part)));
  const what = ofObservations ? "name" : "word";
  kind(`Topics with the ${what}`, topics.filter((row) => has(row.name) || begins(topicWords.get(row.topic))).map((row) => item(String(row.topic), row.name, () => chooseTopic(row.topic, true))));
  kind(`Clusters with the ${what}`, groups.filter((row) => has(row.name) || begins(words.get(row.cluster))).map((row) => item(String(row.number), row.name, () => show(row.cluster, true), row.cluster)));
  const matches = [], isRead = hasTexts && allTexts(), safe = new RegExp(parts.map(beginning).join("|"), "giu");
  const valueWith = (row) => { for (const name of Object.keys(DESCRIPTION.contexts)) { const value = row[`in ${name}`], met = Array.isArray(value) && value.find(has); if (met) return met; } };
  for (const row of documents) {
    const text = isRead ? knownText(row.document) : null;
    let met;
    if (text && has(text)) matches.push([row, row.title, text]);
    else if (has(row.title)) matches.push([row, row.title]);
    else if ((met = valueWith(row)) !== undefined) matches.push([row, `${met}: ${row.title}`]);
  }
  const searched = { of: `what was searched: ${asked}`, words: parts }, rows = matches.map(([row]) => row);
  light(rows);
  tally(asked, rows, searched);
  if (matches.length) {
    const about = element("li", null, { className: "kind" });
    about.append(...sayTally(rows), " ", element("button", "Show who and when, and list all documents", { type: "button", className: "link", onclick: () => $("found-title").focus() }));
    results.append(about);
  }
  const firsts = matches.slice(0, FIRST_FOUND);
  results.append(...firsts.map(([row, title, text]) => {
    const line = item(null, title, opens(row, searched), groupOf.get(row));
    line.className = "hit";
    if (text) { const part = element("span", null, { className: "excerpt" }); part.append(...excerpt(text, safe)); line.append(part); }
    return line;
  }));
  if (hasTexts && !allTexts()) {
    const ask = item(null, "Search the texts, too", async () => {
      ask.firstChild.disabled = true;
      try {
        for (const script of scripts.keys()) { ask.firstChild.lastChild.textContent = `reading texts: ${script + 1} of ${scripts.length}`; await load(script); }
        search();
      } catch (error) { ask.firstChild.lastChild.textContent = error.message; }
    });
    results.append(ask);
  }
  if (!results.querySelector("button") || (hasTexts && !allTexts() && results.children.length === 1)) results.prepend(element("li", `nothing found${ofMap}`, { className: "kind" }));
};

// -- who and when, of what was found -----------------------------------------------------------------------------
// of each value, of those who have it, how many were found
const tallied = (rows, valuesIn) => {
  const counts = new Map(), found = new Set(rows);
  for (const row of documents)
    for (const one of new Set(valuesIn(row))) {
      const of = counts.get(one) || { value: one, found: 0, documents: 0 };
      of.documents += 1;
      if (found.has(row)) of.found += 1;
      counts.set(one, of);
    }
  return [...counts.values()].filter((one) => one.found).map((one) => ({ ...one, share: one.found / one.documents })).sort((a, b) => b.found - a.found || b.share - a.share);
};
const namesIn = (name) => (row) => row[`in ${name}`] || [];
const groupings = () => [
  ...(noClusters ? [] : [["cluster", (row) => [groupOf.get(row)], calledOf]]),
  ...(documents.some((row) => row.label) ? [["label", (row) => (row.label ? [row.label] : [])]] : []),
  ...Object.keys(DESCRIPTION.contexts).filter((name) => !DESCRIPTION.contexts[name].number).map((name) => [name, namesIn(name)]),
];
// the steps that shares over a number have in this report
const stepsOf = (name) => {
  const first = [...trends.keys()].find((key) => key.endsWith(` ${name}`) && trends.get(key)[0].context === name);
  return first ? trends.get(first) : [];
};
const inSteps = (rows, name) => {
  const steps = stepsOf(name), stepOf = (row) => { const x = row[`in ${name}`]; return known(x) ? steps.findLastIndex((one) => x >= one.start - 1e-8) : -1; };
  const found = new Map(tallied(rows, (row) => [stepOf(row)]).map((one) => [one.value, one])), whole = new Map();
  for (const row of documents) { const one = stepOf(row); whole.set(one, (whole.get(one) || 0) + 1); }
  return steps.map((one, i) => ({ start: one.start, end: one.end, period: one.period, found: found.get(i)?.found ?? 0, documents: whole.get(i) ?? 0, step: i })).filter((one) => one.documents);
};
// 90 % interval of a share (Wilson)
const wilson = (found, n) => {
  const z = 1.645, p = found / n, middle = (p + (z * z) / (2 * n)) / (1 + (z * z) / n), half = (z * Math.sqrt((p * (1 - p)) / n + (z * z) / (4 * n * n))) / (1 + (z * z) / n);
  return { share: p, low: Math.max(0, middle - half), high: Math.min(1, middle + half) };
};
const numbersOfDocuments = () => Object.keys(DESCRIPTION.contexts).filter((name) => DESCRIPTION.contexts[name].number && stepsOf(name).length > 1);
// those with most that were found, and the one with the largest share, as far as its documents are enough to say so
const sayMost = (name, sorted, say, n) => {
  if (!sorted.length) return "";
  const first = sorted.slice(0, n), [largest] = sorted.slice().sort((a, b) => wilson(b.found, b.documents).low - wilson(a.found, a.documents).low);
  const share = largest === first[0] ? "" : `; largest share: ${say(largest)} (${percent(largest.found / largest.documents)})`;
  return `Most by ${name}: ${first.map((one) => `${say(one)} (${whole(one.found)} of ${whole(one.documents)})`).join(", ")}${share}.`;
};
// in a sentence: how many, who most, and when most
const sayTally = (rows) => {
  const said = [`Found in ${many(rows.length, "document")}, ${percent(rows.length / documents.length)}${documents.length < nDocuments ? ` of the ${whole(documents.length)} in this report` : ""}.`];
  for (const [name, valuesIn] of groupings().filter(([one]) => one !== "cluster").slice(0, MAX_COLUMNS_FOUND)) {
    said.push(sayMost(name, tallied(rows, valuesIn), (one) => cutTo(one.value, 40), 2));
  }
  for (const name of numbersOfDocuments().slice(0, 1)) said.push(sayMost(name, inSteps(rows, name).sort((a, b) => b.found - a.found), (one) => sayStep(name, one), 1));
  return [said.filter(Boolean).join(" ")];
};
let foundOnly = null, tallyBy = "found";
const foundCharts = new Map(); // by the name of their place
const foundOrder = { by: "title", down: false };
const listFound = (rows, searched) => {
  const shown = foundOnly ? rows.filter(foundOnly.has) : rows, of = $("found-of");
  fill(of, [element("span", foundOnly ? `${many(shown.length, "document")} with ${foundOnly.name}` : many(rows.length, "document"))]);
  if (foundOnly) of.append(" ", element("button", "All that were found", { type: "button", className: "link", onclick: () => { foundOnly = null; listFound(rows, searched); } }));
  const names = Object.keys(DESCRIPTION.contexts).filter((name) => shown.some((row) => known(row[`in ${name}`]))).slice(0, MAX_COLUMNS_FOUND);
  for (const name of names) COLUMNS[`in ${name}`] = [name, (row) => { const value = row[`in ${name}`]; return Array.isArray(value) ? cutTo(value.join("; "), 60) : sayNumber(name, value); }, DESCRIPTION.contexts[name].number ? (row) => row[`in ${name}`] : null];
  if (!COLUMNS[foundOrder.by] || !["title", "cluster", ...names.map((name) => `in ${name}`)].includes(foundOrder.by)) Object.assign(foundOrder, { by: "title", down: false });
  listing("found-list", shown, ["title", ...names.map((name) => `in ${name}`), ...(noClusters || narrow() ? [] : ["cluster"])], foundOrder, () => searched);
};
const tally = (asked, rows, searched) => {
  foundOnly = null;
  $("found-part").hidden = !rows.length;
  if (!rows.length) return;
  $("found-title").textContent = `Found: ${asked}`;
  const only = (name, has) => { foundOnly = { name, has }; listFound(rows, searched); $("found-of").scrollIntoView({ block: "nearest" }); };
  const parts = groupings().map(([name, valuesIn, say = (value) => value]) => {
    const found = tallied(rows, valuesIn);
    if (!found.length) return null;
    if (tallyBy === "share") found.sort((a, b) => b.share - a.share || b.found - a.found);
    const table = tableOf([name, "", "documents", ""], found.map((one) => ["", whole(one.found), whole(one.documents), percent(one.share)]));
    found.forEach((one, i) => table.tBodies[0].rows[i].cells[0].replaceChildren(element("button", say(one.value), { type: "button", className: "link", onclick: () => only(`${name} ${say(one.value)}`, (row) => valuesIn(row).includes(one.value)) })));
    for (const [cell, by, text] of [[1, "found", "found"], [3, "share", "share found"]])
      table.tHead.rows[0].cells[cell].append(element("button", `${text}${tallyBy === by ? " ▾" : ""}`, { type: "button", className: "link", onclick: () => { tallyBy = by; tally(asked, rows, searched); } }));
    const made = block(element("h3", `By ${name}`), table);
    shorten(table.tBodies[0], FIRST_VALUES, "value", `found by ${name}`);
    return made;
  }).filter(Boolean);
  const overTime = numbersOfDocuments().map((name, i) => [name, `found-over-${i}`, inSteps(rows, name)]);
  for (const [name, id] of overTime) {
    if (!foundCharts.has(id)) foundCharts.set(id, block(element("h3", `Share of documents found, by ${name}`), element("div", null, { id, className: "chart" })));
    parts.unshift(foundCharts.get(id));
  }
  fill($("found"), [element("p", sayTally(rows)[0], { className: "soft small" }), ...parts]);
  for (const [name, id, steps] of overTime) {
    const data = steps.map((one) => ({ ...one, ...wilson(one.found, one.documents), name: "", colour: css("--accent"), shape: "circle" }));
    draw(id, "trend", { trend: data }, (d) => `${step(name, d)}: ${sayShare(d)}\n${whole(d.found)} of ${many(d.documents, "document")}`, `Share of documents found, by ${name}: ${asked}`, {
      isDate: aboutVariable.get(name).date, rows: steps,
      click: (d) => { if (d && known(d.start)) only(step(name, d), (row) => row[`in ${name}`] >= d.start - 1e-8 && row[`in ${name}`] < d.end - 1e-8); },
    });
  }
  listFound(rows, searched);
};
