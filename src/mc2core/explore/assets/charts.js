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
  if (colourBy === "cluster") return { of: (row) => colours.get(groupOf.get(row)), legend: groups.slice(0, 12).map((row) => [nameOf(row.cluster), colours.get(row.cluster)]) };
  if (colourBy === "label") return categories((row) => row.label);
  const context = DESCRIPTION.contexts[colourBy.slice(3)];
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
    const inside = !lit || groupOf.get(row) === chosen;
    return { x: row.x, y: row.y, document: row.document, colour: colour.of(row), opacity: inside ? 0.85 : 0.13, size: inside && lit ? size * 1.5 : size };
  });
  const byGroup = new Map();
  for (const row of points) byGroup.has(groupOf.get(row)) ? byGroup.get(groupOf.get(row)).push(row) : byGroup.set(groupOf.get(row), [row]);
  const said = groups.filter((row, i) => byGroup.has(row.cluster) && (i < 40 || row.cluster === chosen));
  return {
    points: shown,
    names: said.map((row) => ({ x: median(byGroup.get(row.cluster).map((p) => p.x)), y: median(byGroup.get(row.cluster).map((p) => p.y)), name: String(row.number), colour: css("--ink") })),
  };
};
const sayDocument = (datum) => {
  const row = byDocument.get(datum.document);
  if (!row) return "";
  const facts = [row.title, `${nameOf(groupOf.get(row))}, probability of cluster ${row.cluster}: ${digits(row.probability)}`];
  if (row.label) facts.push(`label: ${row.label}`);
  for (const name of Object.keys(DESCRIPTION.contexts)) {
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
      if (row) return show(groupOf.get(row));
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
