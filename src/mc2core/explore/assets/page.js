"use strict";
(() => {
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
  const T = FOUND.tables, K = FOUND.clusters;
  const nodes = new Map(rowsOf(FOUND.nodes).map((row) => [row.cluster, row]));
  const documents = rowsOf(T.documents), byDocument = new Map(documents.map((row) => [row.document, row]));
  const points = documents.filter((row) => row.x !== null);
  const merges = rowsOf(T.merges);
  const words = grouped(rowsOf(T.cluster_words), "cluster"), topicWords = grouped(rowsOf(T.topic_words), "topic");
  const typical = grouped(rowsOf(T.cluster_documents), "cluster"), labels = grouped(rowsOf(T.cluster_labels), "cluster");
  const values = grouped(rowsOf(T.cluster_values), "cluster"), numbers = grouped(rowsOf(T.cluster_numbers), "cluster");
  const topics = rowsOf(T.topics), uses = grouped(rowsOf(T.topic_clusters), "topic");
  const usedBy = grouped(rowsOf(T.topic_clusters), "cluster");
  const trends = grouped(rowsOf(T.trends).map((row) => ({ ...row, key: `${row.of} ${row.number}` })), "key");
  for (const [name, context] of Object.entries(FOUND.contexts))
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
  const percent = (x) => (x === null || x === undefined ? "–" : `${+(100 * x).toPrecision(3)} %`);
  const digits = (x) => (x === null || x === undefined ? "–" : `${+x.toPrecision(4)}`);
  const whole = (x) => Number(x).toLocaleString("en");
  const many = (n, what) => `${whole(n)} ${what}${n === 1 ? "" : "s"}`;
  const dark = () => getComputedStyle(document.documentElement).colorScheme === "dark";
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const PALETTE = ["#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#76b7b2", "#d4a017", "#ff9da7", "#9c755f",
    "#1f9e89", "#8c6bb1", "#c51b8a", "#7f8c1f", "#5b9bd5", "#d95f02", "#3f7f3f", "#a6611a", "#6a7fdb", "#b8476e", "#7b8794"];
  const REST = "#9aa0a8";
  const ramp = (t) => {
    const stops = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [240, 216, 50]];
    const at = Math.min(Math.max(t, 0), 1) * (stops.length - 1), low = Math.min(Math.floor(at), stops.length - 2);
    return `rgb(${stops[low].map((c, i) => Math.round(c + (at - low) * (stops[low + 1][i] - c))).join(",")})`;
  };

  // -- what is left after some merges ----------------------------------------------------------------------------
  let left = FOUND.most, groupOf = new Map(), groups = [], colours = new Map(), chosen = null, lit = false, topic = null, colourBy = "cluster";
  const cut = (n) => {
    const parent = new Map();
    for (const merge of merges) {
      if (merge.groups_left < n) break;
      parent.set(merge.first, merge.union).set(merge.second, merge.union);
    }
    const root = (node) => { while (parent.has(node)) node = parent.get(node); return node; };
    groupOf = new Map();
    for (let cluster = 1; cluster <= K; cluster++) groupOf.set(cluster, root(cluster));
    groups = [...new Set(groupOf.values())].map((node) => nodes.get(node)).sort((a, b) => b.documents - a.documents || a.cluster - b.cluster);
    colours = new Map(groups.map((row, i) => [row.cluster, i < PALETTE.length ? PALETTE[i] : groups.length <= 60 ? PALETTE[i % PALETTE.length] : REST]));
    left = n;
    if (chosen !== null && !nodes.has(chosen)) chosen = null;
    if (chosen !== null && !colours.has(chosen)) chosen = root(membersOf(chosen)[0]);
  };
  const membersOf = (node) => {
    if (node <= K) return [node];
    const merge = merges[node - K - 1];
    return [...membersOf(merge.first), ...membersOf(merge.second)];
  };
  const nameOf = (node) => (node <= K ? `Cluster ${node}` : `Union ${node}`);

  // -- charts ----------------------------------------------------------------------------------------------------
  const config = () => ({
    axis: { labelColor: css("--ink"), titleColor: css("--soft"), gridColor: css("--line"), domainColor: css("--line"), tickColor: css("--line"), titleFontWeight: "normal", labelFont: "inherit" },
    text: { fill: css("--ink") }, rect: { fill: css("--accent") }, line: { stroke: css("--accent") }, symbol: { fill: css("--accent") },
  });
  const tip = $("tip");
  const showTip = (text, event) => {
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const x = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8), y = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8);
    Object.assign(tip.style, { left: `${Math.max(x, 4)}px`, top: `${Math.max(y, 4)}px` });
  };
  const filled = (kind, data) => {
    const spec = JSON.parse(JSON.stringify(CHARTS[kind]).replaceAll("#4c78a8", css("--accent")));
    for (const source of spec.data) if (data[source.name]) source.values = data[source.name];
    return spec;
  };
  // Views are made asynchronously: an entry holds the newest data until its view is there, and passes them on.
  const views = new Map();
  const passOn = (entry) => {
    for (const [name, rows] of Object.entries(entry.data)) entry.view.data(name, rows);
    entry.view.run();
    const canvas = entry.box.querySelector("canvas");
    if (canvas) Object.entries({ role: "img", "aria-label": entry.label }).forEach(([name, value]) => canvas.setAttribute(name, value));
  };
  const draw = (id, kind, data, say, label) => {
    const box = $(id);
    let entry = views.get(id);
    if (entry && entry.box === box) {
      Object.assign(entry, { data, say, label });
      if (entry.view) passOn(entry);
      return entry;
    }
    entry?.view?.finalize();
    entry = { box, data, say, label, view: null };
    const tooltip = (_, event, item) => showTip(item && item.datum ? entry.say(item.datum) : "", event);
    entry.ready = vegaEmbed(box, filled(kind, data), { mode: "vega", renderer: "canvas", actions: false, defaultStyle: false, config: config(), tooltip }).then(({ view }) => {
      if (views.get(id) !== entry) return view.finalize();
      entry.view = view;
      passOn(entry);
    });
    views.set(id, entry);
    return entry;
  };
  const forget = () => {
    views.forEach((entry) => entry.view?.finalize());
    views.clear();
  };
  addEventListener("resize", () => views.forEach((entry) => entry.view?.resize().runAsync()));

  const relevant = (rows, weight) => rows
    .map((row) => ({ ...row, relevance: weight * Math.log(row.probability) + (1 - weight) * Math.log(row.lift) }))
    .sort((a, b) => b.relevance - a.relevance).slice(0, 12);
  const bars = (id, rows, weight, label) => {
    const data = relevant(rows, weight).map((row, place) => ({ word: row.word, probability: row.probability, lift: row.lift, everywhere: row.probability / row.lift, place }));
    draw(id, "bars", { bars: data }, (d) => `${d.word}\nprobability ${digits(d.probability)}, lift ${digits(d.lift)}`, `${label}: ${data.map((row) => row.word).join(", ")}`);
  };
  const trendCharts = (parent, key, what) => {
    for (const [context, rows] of grouped(trends.get(key) || [], "context")) {
      const id = `${parent.id}-${context}`.replaceAll(/[^\w-]/g, "_");
      parent.append(element("h3", `${what} over ${context}`), element("div", null, { id, className: "chart" }));
      const data = rows.filter((row) => row.share !== null);
      draw(id, "trend", { trend: data }, (d) => `${context} ${digits(d.start)}: ${percent(d.share)}`, `${what} over ${context}`);
    }
  };

  // -- the map ---------------------------------------------------------------------------------------------------
  const colouring = () => {
    if (colourBy === "cluster") return { of: (row) => colours.get(groupOf.get(row.cluster)), legend: groups.slice(0, 12).map((row) => [nameOf(row.cluster), colours.get(row.cluster)]) };
    if (colourBy === "label") return categories((row) => row.label);
    const context = FOUND.contexts[colourBy.slice(3)];
    if (!context.number) return categories((row) => (row[colourBy] || [])[0]);
    const known = context.number.filter((x) => x !== null), low = Math.min(...known), high = Math.max(...known);
    const colour = (x) => (x === null || x === undefined ? REST : ramp(high > low ? (x - low) / (high - low) : 0.5));
    return { of: (row) => colour(row[colourBy]), legend: [0, 0.25, 0.5, 0.75, 1].map((t) => [digits(low + t * (high - low)), ramp(t)]) };
  };
  const categories = (get) => {
    const counts = new Map();
    for (const row of points) if (get(row)) counts.set(get(row), (counts.get(get(row)) || 0) + 1);
    const common = [...counts.entries()].sort((a, b) => b[1] - a[1]).slice(0, PALETTE.length).map(([name]) => name);
    const colour = new Map(common.map((name, i) => [name, PALETTE[i]]));
    const legend = common.map((name) => [name, colour.get(name)]);
    return { of: (row) => colour.get(get(row)) || REST, legend: counts.size > common.length ? [...legend, ["others", REST]] : legend };
  };
  const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];
  const mapData = () => {
    const colour = colouring(), size = points.length > 3000 ? 14 : points.length > 400 ? 30 : 70;
    fill($("legend"), colour.legend.map(([name, dot]) => { const one = element("span", name); one.style.setProperty("--dot", dot); return one; }));
    const shown = points.map((row) => {
      const inside = !lit || groupOf.get(row.cluster) === chosen;
      return { x: row.x, y: row.y, document: row.document, colour: colour.of(row), opacity: inside ? 0.85 : 0.13, size: inside && lit ? size * 1.5 : size };
    });
    const names = grouped(points, "cluster"), byGroup = new Map();
    for (const [cluster, rows] of names) byGroup.set(groupOf.get(cluster), [...(byGroup.get(groupOf.get(cluster)) || []), ...rows]);
    const said = groups.filter((row, i) => byGroup.has(row.cluster) && (i < 40 || row.cluster === chosen));
    return {
      points: shown,
      names: said.map((row) => ({ x: median(byGroup.get(row.cluster).map((p) => p.x)), y: median(byGroup.get(row.cluster).map((p) => p.y)), name: String(row.cluster), colour: css("--ink") })),
    };
  };
  const sayDocument = (datum) => {
    const row = byDocument.get(datum.document);
    if (!row) return "";
    const facts = [row.title, `${nameOf(groupOf.get(row.cluster))}, probability of cluster ${row.cluster}: ${digits(row.probability)}`];
    if (row.label) facts.push(`label: ${row.label}`);
    for (const name of Object.keys(FOUND.contexts)) {
      const value = row[`in ${name}`];
      if (value !== null && value !== undefined && (!Array.isArray(value) || value.length)) facts.push(`${name}: ${Array.isArray(value) ? value.slice(0, 6).join("; ") : digits(value)}`);
    }
    return facts.join("\n");
  };
  const drawMap = () => {
    const entry = draw("map", "map", mapData(), sayDocument, `Map of ${many(points.length, "document")}`);
    entry.ready.then(() => {
      if (!entry.view || entry.listens) return;
      entry.listens = true;
      entry.view.addEventListener("click", (_, item) => {
        const row = item && item.datum && byDocument.get(item.datum.document);
        if (row) return show(groupOf.get(row.cluster));
        lit = false;
        drawMap();
      });
    });
  };
  const zoom = (factor, dx = 0, dy = 0) => {
    const map = views.get("map").view;
    if (!map) return;
    for (const [signal, d] of [["zoom_x", dx], ["zoom_y", dy]]) {
      const [low, high] = map.signal(signal) || [-0.02, 1.02], half = ((high - low) / 2) * factor, centre = (low + high) / 2 + d * (high - low);
      map.signal(signal, [centre - half, centre + half]);
    }
    map.run();
  };
  const wholeMap = () => views.get("map").view?.signal("zoom_x", [-0.02, 1.02]).signal("zoom_y", [-0.02, 1.02]).run();
  const KEYS = { "+": [0.8], "=": [0.8], "-": [1.25], ArrowLeft: [1, -0.1, 0], ArrowRight: [1, 0.1, 0], ArrowUp: [1, 0, 0.1], ArrowDown: [1, 0, -0.1] };
  $("map").addEventListener("keydown", (event) => {
    if (event.key === "0") wholeMap();
    else if (KEYS[event.key]) zoom(...KEYS[event.key]);
    else return;
    event.preventDefault();
  });
  $("zoom-in").onclick = () => zoom(0.8);
  $("zoom-out").onclick = () => zoom(1.25);
  $("zoom-reset").onclick = wholeMap;
  $("map").addEventListener("mouseleave", () => showTip(""));

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
    const line = item(String(row.cluster), `${whole(row.documents)} · ${row.words.split(" ").slice(0, 5).join(" ")}`, () => show(row.cluster), colours.get(row.cluster), row.cluster === chosen);
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
    if (node > K) facts.push(`joins clusters ${membersOf(node).sort((a, b) => a - b).join(", ")}`);
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

  const listTopics = () => fill($("topics"), topics.map((row) => item(percent(row.share), `${row.topic}: ${row.words.split(" ").slice(0, 6).join(" ")}`, () => chooseTopic(row.topic), null, row.topic === topic)));
  const chooseTopic = (number, focus = false) => {
    topic = number;
    listTopics();
    const row = topics.find((one) => one.topic === number);
    $("topic-title").textContent = `Topic ${number}`;
    const trendsOf = Object.keys(row).filter((name) => name.endsWith("_trend") && row[name] !== null);
    $("topic-facts").textContent = [`${percent(row.share)} of the tokens`, `used by ${many(row.clusters, "cluster")}`, `coherence (NPMI) ${digits(row.npmi)}`,
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
      .map((row) => item(String(row.cluster), row.words.split(" ").slice(0, 6).join(" "), () => show(row.cluster, true), colours.get(row.cluster))));
    const found = [];
    for (const row of documents) {
      if (has(row.title)) found.push([row, row.title]);
      else {
        for (const name of Object.keys(FOUND.contexts)) {
          const value = row[`in ${name}`], met = Array.isArray(value) && value.find(has);
          if (met) { found.push([row, `${met}: ${row.title}`]); break; }
        }
      }
      if (found.length >= 30) break;
    }
    kind("Documents", found.map(([row, text]) => item(null, text, () => show(groupOf.get(row.cluster), true), colours.get(groupOf.get(row.cluster)))));
    if (!results.children.length) results.append(element("li", "nothing found", { className: "kind" }));
  };

  // -- controls --------------------------------------------------------------------------------------------------
  const sayMerged = () => {
    $("groups-number").textContent = `${whole(left)} of ${whole(K)}`;
    const last = left < K ? merges[K - left - 1] : null;
    const scores = last || Object.fromEntries(FOUND.summary.filter(([name]) => name.endsWith(" of all clusters")).map(([name, value]) => [name.split(" ")[0], +value]));
    const parts = [last ? `ln marginal likelihood changed by ${digits(last.total_change)} through merging` : "nothing is merged"];
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
  slider.max = FOUND.most;
  slider.value = FOUND.most;
  slider.disabled = FOUND.most < 2;
  slider.oninput = () => setLeft(+slider.value);
  $("relevance").oninput = () => bars("cluster-bars", words.get(chosen) || [], +$("relevance").value, `Words of ${nameOf(chosen)}`);
  $("topic-relevance").oninput = () => bars("topic-bars", topicWords.get(topic) || [], +$("topic-relevance").value, `Words of topic ${topic}`);
  $("search").oninput = search;
  const options = [["cluster", "cluster"]];
  if (points.some((row) => row.label)) options.push(["label", "label"]);
  for (const name of Object.keys(FOUND.contexts)) options.push([`in ${name}`, name]);
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
  $("summary").textContent = FOUND.summary.filter(([name]) => ["documents", "words", "tokens", "clusters", "topics"].includes(name)).map(([name, value]) => `${whole(value)} ${name}`).join(" · ")
    + (points.length < FOUND.summary[0][1] ? ` · the map shows ${whole(points.length)} of them, drawn at random` : "");
  cut(FOUND.most);
  sayMerged();
  redraw();
  Promise.all([...views.values()].map((entry) => entry.ready)).then(() => { document.body.dataset.ready = "true"; });
})();
