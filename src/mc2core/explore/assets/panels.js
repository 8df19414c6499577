// -- lists and panels ------------------------------------------------------------------------------------------
const item = (number, text, action, dot, current) => {
  const button = element("button", undefined, { type: "button", onclick: action });
  if (dot) { const mark = element("span", undefined, { className: "dot" }); mark.style.setProperty("--dot", dot); button.append(mark); }
  if (number !== null) button.append(element("span", number, { className: "number" }));
  button.append(element("span", text));
  if (current) button.setAttribute("aria-current", "true");
  const line = element("li");
  line.append(button);
  return line;
};
// within its list: scrollIntoView would move the page as well
const keepInSight = (list) => {
  const one = list.querySelector("[aria-current]")?.getBoundingClientRect(), box = list.getBoundingClientRect();
  if (one) list.scrollTop += Math.min(one.top - box.top, 0) + Math.max(one.bottom - box.bottom, 0);
};
const listClusters = () => fill($("clusters"), groups.map((row) => {
  const line = item(String(row.number), `${whole(row.documents)} · ${row.words.split(" ").slice(0, 5).join(" ")}`, () => show(row.cluster), colours.get(row.cluster), row.cluster === chosen);
  line.firstChild.dataset.cluster = row.cluster;
  line.firstChild.setAttribute("aria-label", `${nameOf(row.cluster)}, ${many(row.documents, "document")}: ${row.words}`);
  return line;
}));
const tableOf = (head, rows) => {
  const table = element("table", undefined, { className: "bars" }), top = element("thead"), body = element("tbody");
  top.append(line(head, "th"));
  for (const row of rows) body.append(line(row, "td"));
  table.append(top, body);
  return table;
};
const line = (cells, tag) => { const row = element("tr"); row.append(...cells.map((cell) => element(tag, cell))); return row; };

const choose = (node, focus = false) => {
  chosen = node;
  listClusters();
  drawMap();
  const row = nodes.get(node);
  $("panel-title").textContent = nameOf(node);
  const facts = [`${many(row.documents, "document")}, ${percent(row.share)} of all`];
  if (row.label) facts.push(`commonest label ${row.label}: ${percent(row.label_share)}`);
  $("facts").textContent = facts.join(" · ");
  bars("cluster-bars", words.get(node) || [], +$("relevance").value, `Words of ${nameOf(node)}`);
  fill($("typical"), (typical.get(node) || []).map((one) => {
    const title = byDocument.get(one.document)?.title ?? `document ${one.document}`;
    const entry = element("li");
    entry.append(element("span", title), element("span", ` ${digits(one.overlap)}`, { className: "soft small", title: "overlap of its words with the cluster's, from 0 to 1" }));
    return entry;
  }));
  aboutCluster(node);
  keepInSight($("clusters"));
  if (focus) $("panel-title").focus();
};
// what a person chose stands out on the map, until its empty part is clicked
const show = (node, focus = false) => {
  lit = true;
  choose(node, focus);
};
const aboutCluster = (node) => {
  const about = $("about");
  about.replaceChildren();
  for (const [name, rows] of grouped(values.get(node) || [], "context")) {
    const common = rows.filter((row) => row.by_share <= 8).sort((a, b) => a.by_share - b.by_share);
    about.append(element("h3", name), tableOf([name, "count", "lift"], common.map((row) => [row.value, digits(row.count), digits(row.lift)])));
  }
  for (const row of numbers.get(node) || [])
    about.append(element("h3", row.context), element("p", `${digits(row.mean)} ± ${digits(row.sd)} (${digits(row.least)} to ${digits(row.most)}, ${many(row.documents, "document")})`));
  trendCharts(about, `cluster ${node}`, "Share of documents");
  const known = labels.get(node) || [];
  if (known.length) about.append(element("h3", "Labels"), tableOf(["label", "documents", "share"], known.slice(0, 8).map((row) => [row.label, whole(row.documents), percent(row.share)])));
  const used = (usedBy.get(node) || []).slice().sort((a, b) => b.share_of_cluster - a.share_of_cluster).slice(0, 8);
  if (used.length && topics.length) {
    const list = element("ul", undefined, { className: "list" });
    list.append(...used.map((row) => item(percent(row.share_of_cluster), `topic ${row.topic}: ${wordsOf(row.topic)}`, () => chooseTopic(row.topic, true))));
    about.append(element("h3", "Topics"), list);
  }
};
const wordsOf = (number) => (topics.find((row) => row.topic === number)?.words || "").split(" ").slice(0, 5).join(" ");

const coherenceOf = (row) => row.npmi === null ? "coherence not known: fewer than two of its words are in five documents"
  : `coherence (NPMI) ${digits(row.npmi)}, by chance ${digits(row.npmi_by_chance)} ± ${digits(row.npmi_by_chance_sd)}`;
const listTopics = () => fill($("topics"), topics.map((row) => item(percent(row.share), `${row.topic}: ${row.words.split(" ").slice(0, 6).join(" ")}`, () => chooseTopic(row.topic), null, row.topic === topic)));
const chooseTopic = (number, focus = false) => {
  topic = number;
  listTopics();
  const row = topics.find((one) => one.topic === number);
  $("topic-title").textContent = `Topic ${number}`;
  const trendsOf = Object.keys(row).filter((name) => name.endsWith("_trend") && row[name] !== null);
  $("topic-facts").textContent = [`${percent(row.share)} of the tokens that were fitted`, `used by ${many(row.clusters, "cluster")}`, coherenceOf(row),
    ...trendsOf.map((name) => `rank correlation with ${name.slice(0, -6)} ${digits(row[name])}`)].join(" · ");
  bars("topic-bars", topicWords.get(number) || [], +$("topic-relevance").value, `Words of topic ${number}`);
  const about = $("topic-about");
  about.replaceChildren();
  trendCharts(about, `topic ${number}`, "Share of tokens");
  const list = element("ul", undefined, { className: "list" });
  const shown = (uses.get(number) || []).filter((one) => colours.has(one.cluster)).sort((a, b) => b.share_of_cluster - a.share_of_cluster).slice(0, 10);
  list.append(...shown.map((one) => item(percent(one.share_of_cluster), `${nameOf(one.cluster)}: ${nodes.get(one.cluster).words.split(" ").slice(0, 5).join(" ")}`, () => show(one.cluster, true), colours.get(one.cluster))));
  about.append(element("h3", "Clusters that use it"), list);
  keepInSight($("topics"));
  if (focus) $("topic-title").focus();
};

// -- search ----------------------------------------------------------------------------------------------------
const search = () => {
  const asked = $("search").value.trim().toLowerCase(), results = $("results");
  results.replaceChildren();
  if (asked.length < 2) return;
  const kind = (name, rows) => { if (rows.length) results.append(element("li", name, { className: "kind" }), ...rows); };
  const has = (text) => text.toLowerCase().includes(asked);
  kind("Topics with the word", topics.filter((row) => (topicWords.get(row.topic) || []).some((one) => one.word.toLowerCase().startsWith(asked))).slice(0, 6)
    .map((row) => item(String(row.topic), row.words.split(" ").slice(0, 6).join(" "), () => chooseTopic(row.topic, true))));
  kind("Clusters with the word", groups.filter((row) => (words.get(row.cluster) || []).some((one) => one.word.toLowerCase().startsWith(asked))).slice(0, 6)
    .map((row) => item(String(row.number), row.words.split(" ").slice(0, 6).join(" "), () => show(row.cluster, true), colours.get(row.cluster))));
  const matches = [];
  for (const row of documents) {
    if (has(row.title)) matches.push([row, row.title]);
    else {
      for (const name of Object.keys(DESCRIPTION.contexts)) {
        const value = row[`in ${name}`], met = Array.isArray(value) && value.find(has);
        if (met) { matches.push([row, `${met}: ${row.title}`]); break; }
      }
    }
    if (matches.length >= 30) break;
  }
  kind(`Documents${ofMap}`, matches.map(([row, text]) => item(null, text, () => show(groupOf.get(row), true), colours.get(groupOf.get(row)))));
  if (!results.children.length) results.append(element("li", `nothing found${ofMap}`, { className: "kind" }));
};

// -- controls --------------------------------------------------------------------------------------------------
const sayMerged = () => {
  $("groups-number").textContent = `${whole(left)} of ${whole(K)}`;
  const level = levels.get(left), parts = [];
  const scores = left < K && level ? level : Object.fromEntries(DESCRIPTION.summary.filter(([name]) => name.endsWith(" of all clusters")).map(([name, value]) => [name.split(" ")[0], +value]));
  if (level?.marked) parts.push("marked: as fine as the data bear");
  if (left === K) parts.push("the clusters of the fit");
  else if (level) parts.push(`the step to this level loses ${digits(level.loss)} nats a document`);
  if (level && level.agreement !== null) parts.push(`agreement between samples ${digits(level.agreement)}`);
  if (scores.nmi !== undefined && scores.nmi !== null) parts.push(`against the labels: NMI ${digits(scores.nmi)}, ARI ${digits(scores.ari)}, purity ${digits(scores.purity)}`);
  $("merged").textContent = parts.join(" · ");
};
const setLeft = (n) => {
  cut(n);
  sayMerged();
  search();
  choose(chosen ?? groups[0].cluster);
  if (topic !== null) chooseTopic(topic);
};
const slider = $("groups");
slider.max = sizes.length - 1;
slider.value = sizes.length - 1;
slider.disabled = sizes.length < 2;
slider.oninput = () => setLeft(sizes[+slider.value]);
$("relevance").oninput = () => bars("cluster-bars", words.get(chosen) || [], +$("relevance").value, `Words of ${nameOf(chosen)}`);
$("topic-relevance").oninput = () => bars("topic-bars", topicWords.get(topic) || [], +$("topic-relevance").value, `Words of topic ${topic}`);
$("search").oninput = search;
const options = [["cluster", "cluster"]];
if (points.some((row) => row.label)) options.push(["label", "label"]);
for (const name of Object.keys(DESCRIPTION.contexts)) options.push([`in ${name}`, name]);
fill($("colour"), options.map(([value, text]) => element("option", text, { value })));
$("colour").onchange = (event) => { colourBy = event.target.value; drawMap(); };
const redraw = () => {
  $("theme").textContent = dark() ? "Light" : "Dark";
  forget();
  choose(chosen ?? groups[0].cluster);
  if (topics.length) chooseTopic(topic ?? topics[0].topic);
};
$("theme").onclick = () => { document.documentElement.dataset.theme = dark() ? "light" : "dark"; redraw(); };
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
const told = Object.fromEntries(DESCRIPTION.summary);
$("summary").textContent = ["documents", "words", "tokens", "clusters", "topics"].map((name) => {
  const range = told[`${name} in 90 % of the samples`];
  return `${whole(told[name])} ${name}${range ? ` (${range} in 90 % of the samples)` : ""}`;
}).concat(told.chains ?? []).join(" · ")
  + (points.length < nDocuments ? ` · the map shows ${whole(points.length)} of them, drawn at random` : "");
cut(left);
sayMerged();
redraw();
Promise.all([...views.values()].map((entry) => entry.ready)).then(() => { document.body.dataset.ready = "true"; });
