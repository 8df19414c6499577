// -- the map ---------------------------------------------------------------------------------------------------
const MIN_SURE = 0.5;
let wholeLegend = false;
const colouring = () => {
  if (colourBy === "cluster") return { of: (row) => colours.get(groupOf.get(row)), legend: groups.map((row) => [nodes.get(row.cluster).name, colours.get(row.cluster)]) };
  if (colourBy === "label") return categories((row) => row.label);
  const isSure = colourBy === "sure", context = isSure ? { number: points.map((row) => row.probability) } : DESCRIPTION.contexts[colourBy.slice(3)];
  if (!context.number) return categories((row) => (row[colourBy] || [])[0]);
  const name = colourBy.slice(3), seen = context.number.filter(known), low = isSure ? 0 : Math.min(...seen), high = isSure ? 1 : Math.max(...seen);
  const colour = (x) => (known(x) ? ramp(high > low ? (x - low) / (high - low) : 0.5) : REST);
  const isWhole = seen.every(Number.isInteger);
  const legend = [0, 0.25, 0.5, 0.75, 1].map((t) => { const x = low + t * (high - low); return [isSure ? percent(x) : sayNumber(name, isWhole ? Math.round(x) : x), ramp(t)]; });
  return { of: (row) => colour(isSure ? row.probability : row[colourBy]), legend };
};
const categories = (get) => {
  const counts = new Map();
  for (const row of points) if (get(row)) counts.set(get(row), (counts.get(get(row)) || 0) + 1);
  const sorted = [...counts.entries()].sort((a, b) => b[1] - a[1]).map(([name]) => name), common = sorted.slice(0, PALETTE.length);
  const colour = new Map(common.map((name, i) => [name, PALETTE[i]]));
  const legend = common.map((name) => [name, colour.get(name)]);
  return { of: (row) => colour.get(get(row)) || REST, legend: sorted.length > common.length ? [...legend, [`${many(sorted.length - common.length, "other")}`, REST]] : legend };
};
const MAX_LEGEND = 12;
const drawLegend = (legend) => {
  const shown = wholeLegend || legend.length <= MAX_LEGEND + 1 ? legend : legend.slice(0, MAX_LEGEND);
  const made = shown.map(([name, dot]) => { const one = element("span", name); one.style.setProperty("--dot", dot); return one; });
  if (legend.length > MAX_LEGEND + 1)
    made.push(element("button", wholeLegend ? "fewer" : `and ${whole(legend.length - shown.length)} more`, { type: "button", className: "link", onclick: () => { wholeLegend = !wholeLegend; drawLegend(legend); } }));
  fill($("legend"), made);
};
// where most of a cluster's points lie together: the middle of the fullest nine of 40 x 40 cells
const CELLS = 40;
const densest = (rows) => {
  const cells = new Map(), key = (i, j) => i * 100 + j, place = (row) => [Math.floor(row.x * CELLS), Math.floor(row.y * CELLS)];
  for (const row of rows) { const one = key(...place(row)); cells.set(one, (cells.get(one) || 0) + 1); }
  let best = null, most = 0;
  for (const one of cells.keys()) {
    let n = 0;
    for (const i of [-1, 0, 1]) for (const j of [-1, 0, 1]) n += cells.get(one + key(i, j)) || 0;
    if (n > most) [best, most] = [one, n];
  }
  const [i, j] = [Math.floor(best / 100), best % 100];
  const near = rows.filter((row) => { const [a, b] = place(row); return Math.abs(a - i) <= 1 && Math.abs(b - j) <= 1; });
  const mean = (name) => near.reduce((sum, row) => sum + row[name], 0) / near.length;
  return { x: mean("x"), y: mean("y") };
};
const WHOLE = [-0.02, 1.02];
const anchors = new Map(); // of every cluster that was shown, by its number
const placedNames = (view) => {
  const byGroup = grouped(points.map((row) => ({ x: row.x, y: row.y, node: groupOf.get(row) })), "node");
  const [x0, x1] = view.signal("zoom_x") || WHOLE, [y0, y1] = view.signal("zoom_y") || WHOLE, w = view.signal("width"), h = view.signal("height");
  const order = groups.filter((row) => byGroup.has(row.cluster)).sort((a, b) => (lit ? (b.cluster === chosen) - (a.cluster === chosen) : 0));
  const wanted = order.map((row) => {
    if (!anchors.has(row.cluster)) anchors.set(row.cluster, densest(byGroup.get(row.cluster)));
    const { x, y } = anchors.get(row.cluster);
    return { x: ((x - x0) / (x1 - x0)) * w, y: h - ((y - y0) / (y1 - y0)) * h, name: fitted(row.name, Math.min(240, w / 2), 12), cluster: row.cluster };
  });
  const dots = points.map((row) => [((row.x - x0) / (x1 - x0)) * w, h - ((row.y - y0) / (y1 - y0)) * h]);
  return withoutOverlap(wanted, w, h, 12, "middle", dots).map((one) => ({ ...one, x: x0 + (one.x / w) * (x1 - x0), y: y0 + ((h - one.y) / h) * (y1 - y0), ink: css("--ink"), halo: css("--paper") }));
};
const mapPoints = () => {
  const colour = colouring(), size = points.length > 3000 ? 16 : points.length > 400 ? 30 : 70;
  drawLegend(colour.legend);
  const doubtful = left < K ? 0 : points.filter((row) => row.probability < MIN_SURE).length;
  fill($("unsure"), doubtful ? [` Hollow dots: ${many(doubtful, "document")} whose cluster is less than half sure. `, element("button", "List them", { type: "button", className: "link", onclick: listUnsure })] : []);
  return points.map((row) => {
    const inside = !lit || groupOf.get(row) === chosen, sure = row.probability >= MIN_SURE || left < K;
    return { x: row.x, y: row.y, document: row.document, colour: inside ? colour.of(row) : REST, inside: !sure ? 0 : inside ? 0.85 : 0.35, opacity: inside ? 0.9 : 0.35, size: inside && lit ? size * 1.5 : size };
  });
};
const factsOf = (row) => {
  const facts = [`${nameOf(groupOf.get(row))}${left < K ? ` (${nameOf(row.cluster)} of the fit)` : ""}`, `probability of cluster ${row.cluster}: ${percent(row.probability)}`];
  if (row.label) facts.push(`label: ${row.label}`);
  for (const name of Object.keys(DESCRIPTION.contexts)) {
    const value = row[`in ${name}`];
    if (known(value) && (!Array.isArray(value) || value.length)) facts.push(`${name}: ${Array.isArray(value) ? value.slice(0, 6).join("; ") : sayNumber(name, value)}`);
  }
  return facts;
};
const sayPoint = (datum) => {
  if (datum.cluster) return nameOf(datum.cluster);
  const row = byDocument.get(datum.document);
  return row ? [row.title, ...factsOf(row)].join("\n") : "";
};
const drawMap = () => {
  const data = mapPoints();
  const entry = draw("map", "map", { points: data, names: placedNames }, sayPoint, `Map of ${many(points.length, "document")}`, {
    rows: points.map((row) => ({ document: row.document, title: row.title, cluster: groupOf.get(row), x: row.x, y: row.y })),
    click: (datum) => {
      const row = datum && byDocument.get(datum.document);
      if (datum?.cluster) return show(datum.cluster);
      if (row) { show(groupOf.get(row)); return openDocument(row.document, markedOfCluster(groupOf.get(row)), false); }
      lit = false;
      drawMap();
    },
  });
  entry.ready.then(() => {
    if (!entry.view || entry.listens) return;
    entry.listens = true;
    let asked = 0;
    const later = () => { cancelAnimationFrame(asked); asked = requestAnimationFrame(() => entry.view.data("names", placedNames(entry.view)).run()); };
    for (const signal of ["zoom_x", "zoom_y"]) entry.view.addSignalListener(signal, later);
  });
};
const zoom = (factor, dx = 0, dy = 0) => {
  const map = views.get("map").view;
  if (!map) return;
  for (const [signal, d] of [["zoom_x", dx], ["zoom_y", dy]]) {
    const [low, high] = map.signal(signal) || WHOLE, half = ((high - low) / 2) * factor, centre = (low + high) / 2 + d * (high - low);
    map.signal(signal, [centre - half, centre + half]);
  }
  map.run();
};
const wholeMap = () => views.get("map").view?.signal("zoom_x", WHOLE).signal("zoom_y", WHOLE).run();
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
document.addEventListener("mouseover", (event) => { if (!event.target.closest(".chart")) showTip(""); });
