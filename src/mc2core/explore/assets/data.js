// -- the tables ------------------------------------------------------------------------------------------------
const unpack = (column) => (Array.isArray(column) ? column : column.codes.map((code) => column.levels[code] ?? ""));
const rowsOf = (table) => {
  if (!table) return [];
  const names = Object.keys(table), columns = names.map((name) => unpack(table[name]));
  return (columns[0] || []).map((_, i) => Object.fromEntries(names.map((name, c) => [name, columns[c][i]])));
};
const grouped = (rows, key) => {
  const groups = new Map();
  for (const row of rows) groups.has(row[key]) ? groups.get(row[key]).push(row) : groups.set(row[key], [row]);
  return groups;
};
const T = DESCRIPTION.tables, K = DESCRIPTION.clusters;
const nodes = new Map(rowsOf(DESCRIPTION.nodes).map((row) => [row.cluster, row]));
const documents = rowsOf(T.documents), byDocument = new Map(documents.map((row) => [row.document, row]));
const points = documents.filter((row) => row.x !== null);
const told = Object.fromEntries(DESCRIPTION.summary), nDocuments = +told.documents;
const ofMap = documents.length < nDocuments ? ` (of ${documents.length.toLocaleString("en")} in this report)` : "";
const sizes = DESCRIPTION.sizes, hierarchy = new Map(rowsOf(T.hierarchy).map((row) => [row.clusters, row]));
const words = grouped(rowsOf(T.cluster_words), "cluster"), topicWords = grouped(rowsOf(T.topic_words), "topic");
// topics emit words, or observations, which are told by their means
const ofObservations = DESCRIPTION.of_observations, TOKENS = ofObservations ? "observations" : "words";
const clusterMeans = grouped(rowsOf(T.cluster_means), "cluster"), topicMeans = grouped(rowsOf(T.topic_means), "topic");
const typical = grouped(rowsOf(T.cluster_documents), "cluster"), labels = grouped(rowsOf(T.cluster_labels), "cluster");
const topicsOf = grouped(rowsOf(T.document_topics), "document");
const topicTypical = grouped(rowsOf(T.topic_documents), "topic");
const values = grouped(rowsOf(T.cluster_values), "cluster"), numbers = grouped(rowsOf(T.cluster_numbers), "cluster");
const topicValues = grouped(rowsOf(T.topic_values), "topic"), topicNumbers = grouped(rowsOf(T.topic_numbers), "topic");
const topics = rowsOf(T.topics), byTopic = new Map(topics.map((row) => [row.topic, row])), uses = grouped(rowsOf(T.topic_clusters), "topic");
const usedBy = grouped(rowsOf(T.topic_clusters), "cluster");
// shares by value and over numbers alike, of a cluster or topic by context
const keyed = (rows) => grouped(rows.map((row) => ({ ...row, key: `${row.of} ${row.number} ${row.context}` })), "key");
const trends = keyed(rowsOf(T.trends).filter((row) => row.share !== null)), shares = keyed(rowsOf(T.shares));
const sharesOf = (what, number, context) => (trends.get(`${what} ${number} ${context}`) || shares.get(`${what} ${number} ${context}`) || []);
// values that begin with a number, months and days of the week in their order, others by how common they are
const CALENDAR = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const rankOf = (name) => (/^[-+]?\d/.test(name ?? "") ? parseFloat(name) : (CALENDAR.indexOf(name?.slice(0, 3).toLowerCase()) + 1) || NaN);
// others by the mean time of their documents, or else by how common they are
const clock = DESCRIPTION.variables.find((one) => one.date) ?? DESCRIPTION.variables.find((one) => one.number && /year|date|time|month|day/i.test(one.name)), timesOf = new Map();
const timeOf = (name) => {
  if (!timesOf.has(name)) {
    const sums = new Map();
    for (const row of documents) {
      const time = clock && row[`in ${clock.name}`], own = row[`in ${name}`] ?? (known(row.label) ? [row.label] : []);
      if (known(time) && Array.isArray(own)) for (const one of own) { const [sum, n] = sums.get(one) || [0, 0]; sums.set(one, [sum + time, n + 1]); }
    }
    timesOf.set(name, new Map([...sums].map(([one, [sum, n]]) => [one, sum / n])));
  }
  return timesOf.get(name);
};
const inOrder = (rows, name) => {
  const isRanked = rows.every((row) => !Number.isNaN(rankOf(row.value))), time = isRanked ? null : timeOf(name), rank = (row) => (isRanked ? rankOf(row.value) : time.get(row.value));
  return isRanked || rows.every((row) => time.has(row.value)) ? rows.slice().sort((a, b) => rank(a) - rank(b)) : rows;
};
const variables = DESCRIPTION.variables.filter((one) => sharesOf("topic", topics[0]?.topic, one.name).length);
const aboutVariable = new Map(DESCRIPTION.variables.map((one) => [one.name, one]));
for (const [name, context] of Object.entries(DESCRIPTION.contexts))
  context.document.forEach((number, i) => {
    const row = byDocument.get(number);
    if (!row) return;
    row[`in ${name}`] = context.number ? context.number[i] : context.values[i].map((one) => context.names[one]);
  });

// -- small helpers ---------------------------------------------------------------------------------------------
const $ = (id) => document.getElementById(id);
const element = (tag, text, properties = {}) => {
  const made = Object.assign(document.createElement(tag), properties);
  if (text !== undefined && text !== null) made.textContent = text;
  return made;
};
const fill = (parent, children) => parent.replaceChildren(...children);
const known = (x) => x !== null && x !== undefined && x !== "";
const percent = (x) => (known(x) ? `${+(100 * x).toPrecision(100 * x < 99.5 ? 2 : 3)} %` : "–");
const digits = (x) => (known(x) ? `${+x.toPrecision(4)}` : "–");
const short = (x) => (known(x) ? `${+x.toPrecision(2)}` : "–");
const whole = (x) => Number(x).toLocaleString("en");
const many = (n, what) => `${whole(n)} ${what}${n === 1 ? "" : "s"}`;
const cutTo = (text, most) => (text.length > most ? `${text.slice(0, most - 1).trimEnd()}…` : text);
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
// a year is whole, a date says its month, other numbers have four digits
const sayNumber = (name, x) => {
  if (!known(x)) return "–";
  if (aboutVariable.get(name)?.date && !Number.isInteger(x)) return `${MONTHS[Math.floor((x % 1) * 12)]} ${Math.floor(x)}`;
  return Number.isInteger(x) ? String(x) : digits(x);
};
// of whole numbers, years among them, the nearest one
const sayEstimate = (name, x) => sayNumber(name, DESCRIPTION.contexts[name]?.number?.every((one) => !known(one) || Number.isInteger(one)) ? Math.round(x) : x);
const sayPeriod = (text) => text.replace(/^(\d+)-(\d+)$/, (_, year, month) => `${MONTHS[month - 1]} ${year}`).replace(/^(\d+)Q(\d)$/, "quarter $2 of $1");
// the first and the last step end where the data end
const limitsOf = (name) => {
  const those = [...numbers.values()].flat().filter((row) => row.context === name);
  return those.length ? [Math.min(...those.map((row) => Math.floor(row.least))), Math.max(...those.map((row) => Math.floor(row.most)))] : [-Infinity, Infinity];
};
const limits = new Map();
const sayStep = (name, row) => {
  const isWhole = Number.isInteger(row.start) && Number.isInteger(row.end);
  if (row.period && row.end - row.start < 1.01) return sayPeriod(row.period);
  if (isWhole) {
    if (!limits.has(name)) limits.set(name, limitsOf(name));
    const [least, most] = limits.get(name), first = Math.max(row.start, least), last = Math.min(row.end - 1, most);
    return last > first ? `${first} to ${last}` : String(first);
  }
  return `${sayNumber(name, row.start)} to ${sayNumber(name, row.end)}`;
};
const sayShare = (row) => `${percent(row.share)}${known(row.low) ? `, 90 % interval ${percent(row.low)} to ${percent(row.high)}` : ""}`;
const dark = () => getComputedStyle(document.documentElement).colorScheme === "dark";
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
// 20 colours that people with any common colour blindness can distinguish; on dark paper with the same hues
const LIGHT = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#901010", "#1050d0", "#105050", "#10d070",
  "#70d0f0", "#b0d0b0", "#1090f0", "#105070", "#107030", "#d05050", "#3050b0", "#90d0d0", "#9090d0", "#d09050", "#d0d050"];
const DARK = ["#3172bf", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#fa7954", "#4d6efd", "#c2ebe6", "#3ac37c",
  "#82b2cc", "#abbba5", "#d0defd", "#1bb9f8", "#99f98f", "#d35a48", "#7483bc", "#118a89", "#648fff", "#f9d5b5", "#eff03b"];
let PALETTE = LIGHT;
const REST = "#9aa0a8";
// beyond the colours, and beside them where points are equal otherwise
const SHAPES = ["circle", "square", "triangle-up", "diamond", "cross"], SIGNS = { circle: "●", square: "■", "triangle-up": "▲", diamond: "◆", cross: "✚" };
const signed = (made, colour, shape = "circle") => { made.style.setProperty("--dot", colour); made.dataset.sign = SIGNS[shape]; return made; };
const between = (stops, t) => {
  const at = Math.min(Math.max(t, 0), 1) * (stops.length - 1), low = Math.min(Math.floor(at), stops.length - 2);
  return `rgb(${stops[low].map((c, i) => Math.round(c + (at - low) * (stops[low + 1][i] - c))).join(",")})`;
};
const ramp = (t) => between([[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [240, 216, 50]], t);

// -- the clusters of one cut ---------------------------------------------------------------------------------
let left = DESCRIPTION.recommended, groupOf = new Map(), groups = [], colours = new Map(), shapes = new Map(), chosen = null, lit = false, topic = null, colourBy = DESCRIPTION.without_clusters ? "topic" : "cluster";
const byCut = grouped([...nodes.values()], "cut");
const cut = (n) => {
  groupOf = new Map(documents.map((row, i) => [row, DESCRIPTION.cuts[n][i]]));
  groups = (byCut.get(n) || []).slice().sort((a, b) => b.documents - a.documents || a.cluster - b.cluster);
  const most = PALETTE.length * SHAPES.length; // smaller ones look alike
  colours = new Map(groups.map((row, i) => [row.cluster, i < most ? PALETTE[i % PALETTE.length] : REST]));
  shapes = new Map(groups.map((row, i) => [row.cluster, SHAPES[i < most ? Math.floor(i / PALETTE.length) : 0]]));
  // what was chosen is now where most of its documents are
  if (chosen !== null && !colours.has(chosen)) {
    const before = DESCRIPTION.cuts[left], counts = new Map();
    documents.forEach((row, i) => { if (before[i] === chosen) counts.set(groupOf.get(row), (counts.get(groupOf.get(row)) || 0) + 1); });
    chosen = [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null;
  }
  left = n;
};
const noClusters = DESCRIPTION.without_clusters; // of a model that has none, such as the HDP, all documents are one
const numberOf = (node) => {
  const row = nodes.get(node);
  return !row || row.cut === DESCRIPTION.recommended ? `Cluster ${node}` : `Cluster ${row.number} of ${row.cut}`;
};
const noGroups = DESCRIPTION.no_groups;
// one cluster of all documents says nothing of how they differ
const isWhole = (node) => noClusters || nodes.get(node)?.cut === 1;
const nameOf = (node) => (isWhole(node) ? "All documents" : nodes.has(node) ? `${numberOf(node)}: ${nodes.get(node).name}` : numberOf(node));
const calledOf = (node) => (isWhole(node) ? "All documents" : nodes.get(node).name);
const topicName = (number) => `Topic ${number}: ${byTopic.get(number).name}`;
// a cluster that other runs did not find is one of several possible groupings
const isUnsure = (row) => (known(row.found) && row.found < 0.5) || (row.topic === undefined && known(row.chains) && row.chains < DESCRIPTION.runs);
const inRuns = (row) => (row.chains === 0 ? "in no single run" : row.chains < DESCRIPTION.runs ? `in ${row.chains} of ${DESCRIPTION.runs} runs` : DESCRIPTION.runs === 2 ? "in both runs" : `in all ${DESCRIPTION.runs} runs`);
const sayFound = (row) => {
  if (known(row.chains)) return row.chains < DESCRIPTION.runs ? (row.chains ? `Unsure: only ${row.chains} of ${DESCRIPTION.runs} runs found it` : "Unsure: no single run found it; it combines several runs") : `Found by ${DESCRIPTION.runs === 2 ? "both" : `all ${DESCRIPTION.runs}`} runs`;
  return row.found < 0.5 ? "Unsure: fewer than half of the samples contain it" : row.found < 1 ? "Most samples contain it" : "All samples contain it";
};
// a topic whose likeliest words meet in documents hardly more often than by chance may be noise; without NPMI nobody knows
const isCoherent = (row) => row.npmi === undefined || (row.npmi !== null && row.npmi - row.npmi_by_chance >= Math.max(0.1, 3 * row.npmi_by_chance_sd));
// in lists and on the heat map alike, by share
const listedTopics = topics.slice().sort((a, b) => b.share - a.share);
