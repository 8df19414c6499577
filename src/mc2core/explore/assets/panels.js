// -- lists and panels ------------------------------------------------------------------------------------------
const drawEmitted = (id, weight, wordRows, meanRows, of) =>
  (ofObservations ? means(id, meanRows || [], `Means of ${of}`) : bars(id, wordRows || [], weight, `Words of ${of}`));
// no word is distinctive of all documents
const weightOf = (node, asked) => (isWhole(node) ? 1 : asked);
const drawCluster = () => drawEmitted("cluster-bars", weightOf(chosen, +$("relevance").value), words.get(chosen), clusterMeans.get(chosen), nameOf(chosen));
const drawTopic = () => drawEmitted("topic-bars", +$("topic-relevance").value, topicWords.get(topic), topicMeans.get(topic), topicName(topic));
const item = (number, text, action, node, current) => {
  const button = element("button", undefined, { type: "button", onclick: action });
  if (colours.has(node)) button.append(signed(element("span"), colours.get(node), shapes.get(node)));
  if (number !== null) button.append(element("span", number, { className: "number" }));
  button.append(element("span", text));
  if (current) button.setAttribute("aria-current", "true");
  const line = element("li");
  line.append(button);
  return line;
};
const unsure = (row) => element("span", row.topic === undefined && known(row.chains) ? inRuns(row) : "unsure", { className: "unsure", title: `found in ${percent(row.found)} of the samples` });
const FIRST_CLUSTERS = 24, FIRST_TOPICS = 15;
// beside its entry, since the panel may be far below
const wordsOf = (row) => [row.distinctive_words && !isWhole(row.cluster) ? row.distinctive_words.split(" ").slice(3).join(", ") : "", ...(numbers.get(row.cluster) || []).slice(0, 1).map((one) => `${one.context} ${sayNumber(one.context, one.median)} (median)`)].filter(Boolean).join(" · ");
const listClusters = () => { $("list-count").textContent = `(${whole(groups.length)})`; fill($("clusters"), groups.map((row) => {
  const line = item(String(row.number), calledOf(row.cluster), () => show(row.cluster), row.cluster, row.cluster === chosen);
  const text = line.firstChild.lastChild, under = element("span", `${many(row.documents, "document")}, ${percent(row.share)} `, { className: "under" });
  if (isWhole(row.cluster)) under.append("");
  else if (isUnsure(row)) under.append(unsure(row));
  text.append(under);
  if (row.cluster === chosen) {
    const more = element("span", wordsOf(row), { className: "excerpt" });
    more.append(" ", element("button", "Details", { type: "button", className: "link", onclick: () => show(row.cluster, true) }));
    line.append(more);
  }
  line.firstChild.dataset.cluster = row.cluster;
  line.firstChild.setAttribute("aria-label", `${nameOf(row.cluster)}, ${many(row.documents, "document")}${isUnsure(row) ? ", unsure" : ""}`);
  return line;
})); shorten($("clusters"), FIRST_CLUSTERS, "cluster"); };
const tableOf = (head, rows) => {
  const table = element("table", undefined, { className: "bars" }), top = element("thead"), body = element("tbody");
  top.append(line(head, "th"));
  for (const row of rows) body.append(line(row, "td"));
  table.append(top, body);
  return table;
};
const line = (cells, tag) => { const row = element("tr"); row.append(...cells.map((cell) => element(tag, cell))); return row; };
const block = (...children) => { const made = element("div", undefined, { className: "block" }); made.append(...children); return made; };

const howSure = (row, what) => {
  if (!known(row.found)) return [];
  const runs = known(row.chains) ? `, ${inRuns(row)}` : "", together = known(row.certainty) ? [`${percent(row.certainty)} certain that its documents belong together`] : [];
  return [`found in ${percent(row.found)} of the samples${runs}${what === "topic" && row.found < 0.5 ? ": an unsure topic" : ""}`, ...together];
};
const choose = (node, focus = false) => {
  chosen = node;
  listClusters();
  drawMap();
  const row = nodes.get(node);
  $("panel-title").textContent = nameOf(node);
  const facts = [`${many(row.documents, "document")}, ${percent(row.share)} of all`, ...(known(row.found) && !isWhole(node) ? [sayFound(row)] : [])];
  if (row.label) facts.push(`commonest label ${row.label}: ${percent(row.label_share)}`);
  $("facts").textContent = facts.join(" · ");
  $("facts-more").textContent = isWhole(node) ? "" : howSure(row, "cluster").join(" · ");
  $("rename-cluster").hidden = isWhole(node);
  $("relevance").parentElement.hidden = isWhole(node) || ofObservations;
  drawCluster();
  listDocuments("typical", (typical.get(node) || []), (one) => short(one.overlap), markedOfCluster(node));
  aboutCluster(node);
  offerMembers();
  offerMerge();
  drawCompare();
  drawTree();
  if (focus) $("panel-title").focus();
};
// what a person chose stands out on the map, until its empty part is clicked
const show = (node, focus = false) => {
  showAll();
  lit = true;
  choose(node, focus);
};
const sayNumbers = (row) => {
  const say = (x) => sayNumber(row.context, x), half = row.lower_quarter === row.upper_quarter ? `half of them at ${say(row.median)}` : `half of them from ${say(row.lower_quarter)} to ${say(row.upper_quarter)}`;
  return row.least === row.most ? `${say(row.least)} (${many(row.documents, "document")})` : `median ${say(row.median)}; ${half}; all from ${say(row.least)} to ${say(row.most)} (${many(row.documents, "document")})`;
};
// values of a context beside a cluster or topic, the commonest (MAX_OF_TOPIC in html_report.py), and those that differ from the average by more than chance explains
const MAX_VALUES_SHOWN = 8;
const saySlope = (row, of) => (row.is_notable ? `${row.trend > 0 ? "rises" : "falls"} with ${row.context} by more than chance explains: ${of} changes by ${short(100 * row.trend)} percentage points per ${aboutVariable.get(row.context)?.date || /year/i.test(row.context) ? "year" : "unit"} (interval ${short(100 * row.low)} to ${short(100 * row.high)})` : `no trend with ${row.context} beyond chance`);
const sayNotable = (rows) => {
  const differing = (sign) => rows.filter((row) => row.is_notable && sign * (row.lift - 1) > 0).sort((a, b) => sign * (b.lift - a.lift)).slice(0, MAX_VALUES_SHOWN).map((row) => `${row.value} (${short(row.lift)} × average)`);
  const [more, less] = [differing(1), differing(-1)];
  return [...(more.length ? [`More common here than chance explains: ${more.join(", ")}.`] : []), ...(less.length ? [`Less common here than chance explains: ${less.join(", ")}.`] : []), ...(more.length || less.length ? [] : ["No value differs from the average by more than chance explains."])].join(" ");
};
const averageOf = (row) => percent(row.lift > 0 ? row.share / row.lift : null);
const valuesBlock = (name, rows, head, cells, isAll = false) => {
  const common = rows.filter((row) => row.by_share <= MAX_VALUES_SHOWN).sort((a, b) => a.by_share - b.by_share);
  return block(element("h3", common.length < MAX_VALUES_SHOWN ? name : `${name}: the ${common.length} commonest`), element("p", isAll ? "" : sayNotable(rows)), tableOf(head, common.map(cells)));
};
const aboutCluster = (node) => {
  const about = $("about");
  about.replaceChildren();
  for (const [name, rows] of grouped(values.get(node) || [], "context")) {
    const counted = DESCRIPTION.contexts[name].values.some((one) => one.length > 1) ? "values" : "documents";
    about.append(isWhole(node) ? valuesBlock(name, rows, ["", "documents", `share of the ${counted}`], (row) => [row.value, digits(row.count), percent(row.share)], true)
      : valuesBlock(name, rows, ["", "documents", ...(counted === "values" ? ["share of its values", "share of all values"] : ["share of the cluster", "share of all"])], (row) => [row.value, digits(row.count), percent(row.share), averageOf(row)]));
  }
  for (const row of numbers.get(node) || []) about.append(block(element("h3", row.context), element("p", [sayNumbers(row), ...(!isWhole(node) ? [saySlope(row, "its share of the documents")] : [])].join("; "))));
  if (!isWhole(node)) trendCharts(about, "cluster", node, "Share of documents");
  const those = labels.get(node) || [];
  if (those.length) about.append(block(element("h3", "Labels"), tableOf(["label", "documents", "share of the cluster's documents"], those.slice(0, 8).map((row) => [row.label, whole(row.documents), percent(row.share)]))));
  const used = (usedBy.get(node) || []).slice().sort((a, b) => b.share_of_cluster - a.share_of_cluster).slice(0, 8);
  if (used.length && topics.length) {
    const list = element("ul", undefined, { className: "list" });
    list.append(...used.map((row) => item(percent(row.share_of_cluster), topicName(row.topic), () => chooseTopic(row.topic, true))));
    about.append(block(element("h3", `Topics, by their share of its ${TOKENS}`), list));
  }
};

const coherenceOf = (row) => row.npmi === undefined ? [] : row.npmi === null ? ["coherence unknown: fewer than two of its likeliest words occur in five or more documents"]
  : [`coherence (NPMI) ${short(row.npmi)}, by chance ${short(row.npmi_by_chance)} ± ${short(row.npmi_by_chance_sd)}`];
const incoherent = () => element("span", "not coherent", { className: "unsure", title: "its likeliest words occur together hardly more often than by chance: it may be noise" });
const listTopics = () => { fill($("topics"), listedTopics.map((row) => {
  const line = item(percent(row.share), `${row.topic}: ${row.name} `, () => nearTopic(row.topic), null, row.topic === topic);
  if (!isCoherent(row)) { line.classList.add("doubtful"); line.firstChild.lastChild.append(incoherent()); }
  if (isUnsure(row)) line.firstChild.lastChild.append(unsure(row));
  return line;
})); shorten($("topics"), FIRST_TOPICS, "topic"); };
const chooseTopic = (number, focus = false) => {
  topic = number;
  listTopics();
  const row = byTopic.get(number);
  $("topic-title").textContent = topicName(number);
  $("topic-facts").textContent = [`${percent(row.share)} of the fitted ${TOKENS}`, ...(noClusters || noGroups ? [] : [`used by ${many(row.clusters, "cluster")}`]), ...howSure(row, "topic"), ...coherenceOf(row),
    ...(topicNumbers.get(number) || []).map((one) => saySlope(one, `its share of the ${TOKENS}`))].join(" · ");
  drawTopic();
  const near = topicTypical.get(number) || [];
  $("topic-typical-part").hidden = !near.length;
  listDocuments("topic-typical", near, (one) => percent(one.share), markedOfTopic(number));
  const about = $("topic-about");
  about.replaceChildren();
  for (const [name, rows] of grouped(topicValues.get(number) || [], "context"))
    about.append(valuesBlock(name, rows, ["", `share of the topic's ${TOKENS}`, `share of all ${TOKENS}`], (row) => [row.value, percent(row.share), averageOf(row)]));
  for (const { context, lower_quarter: low, median, upper_quarter: high } of topicNumbers.get(number) || []) {
    const say = (x) => sayNumber(context, x), half = low === high ? `at ${say(median)}` : `from ${say(low)} to ${say(high)}`;
    about.append(block(element("h3", context), element("p", `median ${say(median)}; half of the topic's ${TOKENS} ${half}`)));
  }
  trendCharts(about, "topic", number, `Share of ${TOKENS}`);
  const list = element("ul", undefined, { className: "list" });
  const shown = (uses.get(number) || []).filter((one) => colours.has(one.cluster)).sort((a, b) => b.share_of_cluster - a.share_of_cluster).slice(0, 10);
  list.append(...shown.map((one) => item(percent(one.share_of_cluster), nameOf(one.cluster), () => show(one.cluster, true), one.cluster)));
  if (!noClusters) about.append(block(element("h3", `Clusters, by its share of their ${TOKENS}`), list));
  drawTopicMap();
  if (compareWhat === "topic") drawCompare();
  if (focus) $("topic-title").focus();
};
// a topic that is chosen far from its words brings them into sight
const nearTopic = (number) => { chooseTopic(number); $("topic-bars").scrollIntoView({ block: "nearest", behavior: "smooth" }); };

// -- controls --------------------------------------------------------------------------------------------------
// the same measure as that of the badges in the list and of the sentence above the map
const sayRuns = () => {
  const runs = DESCRIPTION.runs, those = groups.filter((row) => (known(row.chains) ? row.chains === runs : row.found >= 0.5));
  if (!groups.length || !known(groups[0].found)) return [];
  return [`${whole(those.length)} of the ${many(groups.length, "cluster")} ${known(groups[0].chains) ? `were found in ${runs === 2 ? "both" : `all ${runs}`} runs` : "were found in most samples"}`];
};
const sayMerged = () => {
  $("groups-number").textContent = `${whole(left)} of ${whole(K)}`;
  const cut = hierarchy.get(left), parts = [], exact = [];
  const scores = left < K && cut ? cut : Object.fromEntries(DESCRIPTION.summary.filter(([name]) => name.endsWith(" of all clusters")).map(([name, value]) => [name.split(" ")[0], +value]));
  const others = Object.entries(DESCRIPTION.other), level = others.find(([, size]) => size === left);
  if (cut?.recommended) parts.push(noGroups ? "no groups of documents were found" : "the recommended number of clusters");
  else if (level) parts.push(`the ${level[0]} clustering; ${whole(DESCRIPTION.recommended)} are recommended`);
  else if (noGroups) parts.push("other fits may divide the documents differently");
  if (left === K) parts.push("all clusters of the fit");
  else if (cut && !cut.recommended && !noGroups && !level) parts.push(left < DESCRIPTION.recommended ? "coarser than recommended" : "finer than recommended");
  if (left < K && cut && cut.loss !== null && !(cut.loss > 0)) parts.push("merging loses nothing");
  if (left < K && cut?.loss > 0) exact.push(`merging makes the documents less likely, by ${short(cut.loss)} nats per document`);
  if (left > 1 && left !== DESCRIPTION.recommended) parts.push(...sayRuns());
  if (cut && cut.agreement !== null && left > 1) exact.push(`adjusted Rand index ${short(cut.agreement)} between the ${DESCRIPTION.runs > 1 ? "runs" : "samples"}, after each was merged separately to ${many(left, "cluster")}`);
  if (known(scores.nmi)) exact.push(`against the labels: NMI ${digits(scores.nmi)}, ARI ${digits(scores.ari)}, purity ${digits(scores.purity)}`);
  $("merged").textContent = parts.join(" · ");
  $("merged-technical").hidden = !exact.length;
  $("merged-technical").lastElementChild.textContent = exact.join(" · ");
};
const setLeft = (n) => {
  cut(n);
  sayMerged();
  search();
  if (compareWhat === "cluster") startPicks();
  choose(chosen ?? groups[0].cluster);
  drawHeat();
  listSections();
  if (topic !== null) chooseTopic(topic);
};
const slider = $("groups");
slider.max = sizes.length - 1;
slider.value = sizes.indexOf(left);
slider.disabled = sizes.length < 2;
slider.oninput = () => setLeft(sizes[+slider.value]);
$("relevance").oninput = drawCluster;
$("topic-relevance").oninput = drawTopic;
$("search").oninput = search;
const options = noClusters ? [] : [["cluster", "cluster"]];
if (topicsOf.size) options.push(["topic", "main topic"]);
if (points.some((row) => row.label)) options.push(["label", "label"]);
for (const name of Object.keys(DESCRIPTION.contexts)) options.push([`in ${name}`, name]);
if (!noClusters) options.push(["sure", "certainty of the cluster"]);
fill($("colour"), options.map(([value, text]) => element("option", text, { value })));
$("colour").onchange = (event) => { startColours(event.target.value); drawMap(); };
$("value").oninput = (event) => { if (event.target.value === "" || [...$("values").options].some((one) => one.value === event.target.value)) { onlyValue = event.target.value; hiddenKeys = new Set(); drawMap(); } };
fill($("heat-by"), [...(topics.length ? [element("option", "topics", { value: "" })] : []), ...variables.map((one) => element("option", one.name, { value: one.name }))]);
$("compare-what").onchange = (event) => { compareWhat = event.target.value; startPicks(); drawCompare(); };
$("compare-add").onchange = (event) => {
  if (event.target.value) picks = [...picks, +event.target.value].slice(-MAX_PICKS);
  drawCompare();
};
$("heat-by").onchange = drawHeat;
$("heat-as").onchange = drawHeat;
// of contexts alone there are no topics
$("topics-part").hidden = !topics.length;
for (const one of [$("clusters-part"), slider.parentElement, $("merged"), $("compare-what").options[0]]) one.hidden = noClusters;
$("compare-what").value = compareWhat;
fill($("save-clusters"), [saver("CSV", "clusters", () => saveText("clusters.csv", toCsv(groups), "text/csv"))]);
fill($("save-topics"), [saver("CSV", "topics", () => saveText("topics.csv", toCsv(topics), "text/csv"))]);
$("report-text").value = DESCRIPTION.markdown;
$("report").onclick = () => { $("report-box").showModal(); $("report-text").select(); $("report-text").scrollTop = 0; };
$("report-copy").onclick = async () => {
  $("report-text").select();
  const done = await navigator.clipboard?.writeText(DESCRIPTION.markdown).then(() => true, () => false);
  $("report-copy").textContent = done || document.execCommand("copy") ? "Copied" : "Press Ctrl+C";
};
$("report-save").onclick = () => saveText("summary.md", DESCRIPTION.markdown, "text/markdown");
$("report-close").onclick = () => $("report-box").close();

// -- what the words mean ---------------------------------------------------------------------------------------
const hasSamples = known(told["clusters in 90 % of the samples"]), hasScores = known(told["nmi of all clusters"]);
const TERMS = [
  ["Name", ofObservations ? "For a topic, the means that differ most from the means of all observations, in standard deviations. For a cluster, the topics that are more common in it than elsewhere. You can give other names: mc2 describe --names."
    : "Three words that are frequent here and rarer elsewhere: the words with the highest value of probability to the power 0.4 times log lift. Words that fit two clusters equally well come last. You can give other names: mc2 describe --names."],
  ["× average", `The frequency of a ${ofObservations ? "" : "word or "}value here, divided by its frequency in the whole corpus (its lift).`],
  ...(variables.length ? [["More common, less common, trend", "Differences from the average, and slopes over a number, that chance does not explain. At most 5 % of the differences shown are expected to be false (Benjamini and Hochberg). Each value has at least five documents and differs from the average by a factor of at least 1.25. If the model has contexts, this test predicts clusters from words alone, because a context that helps to form clusters would always agree with them."]] : []),
  ["Context of the model", "The model used this value of each document, so documents with the same value are more likely to share a cluster. Other contexts did not influence the clusters."],
  ["Certainty of a document's cluster", hasSamples ? "A sample is one possible grouping. In each sample, the document shares its group with other documents. The number is the share of these documents that are in its cluster here, averaged over samples." : "The probability of the cluster given this one sample of the posterior."],
  ...(hasSamples ? [["In 90 % of the samples", "The range of the middle 90 % of the samples. Other numbers, and all topics, are from one sample: the sample whose clusters are most similar to all others. The number of topics has no such range, because it depends more on the prior of the words (topic_word_prior) than on the sample."]] : []),
  ["90 % interval", "Range of the share in all such documents, given the clusters and topics of the samples. If the words of the true topics are more even than their prior (topic_word_prior) assumes, topics are split, and their intervals and the certainty of documents are too optimistic."],
  ...(hasSamples ? [["Found, unsure", "A run is one chain of the fit, with its own random start. A cluster is found in a sample if some clusters of the sample together match it (Jaccard index of at least one half, corrected for chance). A topic is found if one topic of the sample " + (ofObservations ? "overlaps with it by half (Bhattacharyya's coefficient)" : "has half of its ten likeliest words") + ". A cluster or topic is unsure if it is found in less than half of the samples, or a cluster if only some runs found it."]] : []),
  ...(told.chains ? [["Runs (chains)", "Independent fits from different starts. A run has found a cluster if more than half of its samples have it. ARI is 1 if runs agree and 0 if they agree only by chance; VI (variation of information) is 0 bits if they agree. Agreement on all clusters compares runs before merging. Agreement on the recommended clusters compares the clusterings of that size, one per run; below 0.7, the report warns."]] : []),
  ...(hierarchy.size ? [["Number of clusters", "Clusters are merged pair by pair. Each step merges the pair that lowers the log marginal likelihood least. The recommended number is the largest one on which runs agree about as well as on any other number. It must also reach at least half of the largest gain in likelihood over one cluster. A single cluster may still be missing in a run. A broad or fine clustering is a second number on which runs agree by at least 0.7."]] : []),
  ...(hasScores ? [["NMI, ARI, purity", "Three measures of agreement with the labels. NMI is the shared information (0 to 1). ARI compares pairs of documents (0 by chance, 1 at best). Purity is the share of documents whose label is the most common label in their cluster."]] : []),
  ...(topics.length && !ofObservations ? [["Coherence (NPMI)", "Whether the ten likeliest words of a topic occur together more often than by chance (0 by chance, 1 at most). The second number is the value for permuted documents, ± its standard deviation. A topic counts as coherent if its value exceeds the second number by at least 0.1 and by at least three standard deviations."]] : []),
];
fill($("limits").querySelector("ul"), DESCRIPTION.limits.map((said) => element("li", said)));
fill($("terms"), TERMS.map(([term, text]) => { const one = element("div"); one.append(element("dt", term), element("dd", text)); return one; }));

const redraw = () => {
  $("theme").textContent = dark() ? "Light" : "Dark";
  PALETTE = dark() ? DARK : LIGHT;
  cut(left);
  forget();
  choose(chosen ?? groups[0].cluster);
  drawHeat();
  drawArrivals();
  if ($("search").value) search();
  if (topics.length) chooseTopic(topic ?? listedTopics[0].topic);
};
// the browser may keep nothing for files
const THEME = "mc2-report-theme", kept = () => { try { return localStorage.getItem(THEME); } catch { return null; } };
const setTheme = (name) => { document.documentElement.dataset.theme = name; redraw(); };
$("theme").onclick = () => {
  setTheme(dark() ? "light" : "dark");
  try { localStorage.setItem(THEME, document.documentElement.dataset.theme); } catch { /* until the page is left */ }
};
$("print").onclick = async () => {
  const before = document.documentElement.dataset.theme;
  setTheme("light");
  await Promise.all([...views.values()].map((entry) => entry.ready));
  print();
  if (before) setTheme(before);
  else { delete document.documentElement.dataset.theme; redraw(); }
};
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
// parts that other reports have
const missing = [
  ...(noClusters ? [`clusters: the model${told.model ? ` (${told.model})` : ""} gives each document its own topics, so all documents are shown as one cluster`] : []),
  ...(topics.length ? topicsOf.size || noClusters ? [] : ["topics of each document: every cluster is a topic of its own"] : ["topics: the documents have no words"]),
  ...(sizes.length > 1 || noClusters || K < 2 ? [] : ["other numbers of clusters: the posterior has no hierarchy for these documents"]),
  ...(ofObservations ? ["words and coherence: topics emit observations"] : hasTexts ? [] : ["texts: add them with mc2 describe --texts"]),
  ...(known(told["contexts of vectors, which have no table"]) ? [`contexts of vectors: ${told["contexts of vectors, which have no table"]}`] : []),
  ...(known(told["drawn evenly from documents"]) ? [`documents: ${whole(nDocuments)} were drawn from ${whole(+told["drawn evenly from documents"])}`] : []),
];
// one number, and the broad and the fine clustering that a click shows; what is exact is in the details
fill($("headline"), noClusters || noGroups ? [many(nDocuments, "document")] : [element("strong", many(DESCRIPTION.recommended, "cluster")), ` of ${many(nDocuments, "document")}`, ...Object.entries(DESCRIPTION.other).flatMap(([name, size]) => [" · ", element("button", `${name} clustering: ${whole(size)}`, { type: "button", className: "link", onclick: () => { slider.value = sizes.indexOf(size); setLeft(size); } })])]);
$("missing").textContent = missing.length ? `Not in this report: ${missing.join("; ")}.` : "";
$("summary").textContent = ["words", "tokens", "observations", "numbers", "counts", "zeros or ones", "topics"].filter((name) => known(told[name]))
  .map((name) => `${whole(told[name])} ${+told[name] === 1 ? name.replace(/s\b/g, "") : name}${name === "topics" && DESCRIPTION.coherence ? ` (${whole(topics.filter(isCoherent).length)} coherent)` : ""}`).join(" · ") + (points.length < nDocuments ? ` · the map shows ${many(points.length, "document")}, drawn at random` : "");
const sentence = (said) => (said ? `${said[0].toUpperCase()}${said.slice(1)}.` : "");
// How sure the clusters are is said by one measure, which runs found them; another is for those who know it.
const MEASURE = /adjusted Rand index/, warnings = DESCRIPTION.summary.filter(([name]) => name.startsWith("warning ")).map(([, said]) => said);
const byRun = told["clusters by run"], differing = byRun ? warnings.filter((said) => MEASURE.test(said)) : [], shownWarnings = warnings.filter((said) => !differing.includes(said));
const recommended = byCut.get(DESCRIPTION.recommended) || [], nFound = recommended.filter((row) => row.chains === DESCRIPTION.runs).length;
const isDoubtful = differing.length > 0 || (byRun && 2 * nFound < recommended.length);
$("runs").textContent = noGroups ? [noGroups, DESCRIPTION.coherence].filter(Boolean).join(" ") : sentence(byRun ?? (DESCRIPTION.runs > 1 ? "" : told.chains)) + (!isDoubtful ? "" : nFound === recommended.length ? " Many single documents still change their cluster from run to run." : nFound ? " The others are uncertain and marked in the list. For more certain clusters, show fewer, or run more iterations or chains." : " The documents may have no clear groups: look at the topics, show fewer clusters, or run more iterations or chains.");
$("runs").className = isDoubtful ? "warning" : "";
const main = told["main clusters in 90 % of the samples"];
const technical = [...(noClusters ? [] : [`the fit has ${many(+told.clusters, "cluster")}${main ? ` (${main} ${main === "1" ? "holds" : "hold"} 95 % of the documents in 90 % of the samples)` : ""}`]), ...(DESCRIPTION.runs > 1 && told.chains ? [told.chains] : []), ...differing];
$("technical").hidden = !technical.length;
$("technical").lastElementChild.textContent = technical.join(" · ");
fill($("warnings"), shownWarnings.map((said) => element("p", sentence(said), { className: "warning" })));
$("clusters-about").textContent = `${noGroups ? "All documents are one group." : "A cluster is a group of documents that have much in common."}${topicsOf.size ? ` A topic is a group of ${TOKENS} that occur together; a document can have several.` : ""}`;
const searched = [...(ofObservations ? [] : ["word"]), "title", "name", ...(hasTexts ? ["text"] : [])];
$("search").placeholder = `${searched.slice(0, -1).join(", ")} or ${searched.at(-1)}`;
if (ofObservations) {
  for (const one of document.querySelectorAll("[data-observations]")) one.textContent = one.dataset.observations;
  for (const one of document.querySelectorAll("[data-words-only]")) one.hidden = true;
}
cut(left);
sayMerged();
startPicks();
startColours(colourBy);
drawOdd();
if (kept()) document.documentElement.dataset.theme = kept();
redraw();
listSections();
Promise.all([...views.values()].map((entry) => entry.ready)).then(() => { document.body.dataset.ready = "true"; });
