// -- the map ---------------------------------------------------------------------------------------------------
const MIN_SURE = 0.5;
// each way to colour: a colour and a shape for a document, the entry of the legend that it belongs to, and the legend
let wholeLegend = false, onlyValue = "", hiddenKeys = new Set(), hits = null;
const colouring = () => {
  if (colourBy === "cluster") {
    const legend = groups.map(({ cluster }) => ({ key: cluster, name: calledOf(cluster), colour: colours.get(cluster), shape: shapes.get(cluster) }));
    return { of: (row) => colours.get(groupOf.get(row)), shape: (row) => shapes.get(groupOf.get(row)), key: (row) => groupOf.get(row), legend };
  }
  if (colourBy === "topic") return categories(mainTopic);
  if (colourBy === "label") return categories((row) => (row.label ? [row.label] : []));
  const isSure = colourBy === "sure", context = isSure ? { number: points.map((row) => row.probability) } : DESCRIPTION.contexts[colourBy.slice(3)];
  if (!context.number) return categories((row) => row[colourBy] || []);
  const name = colourBy.slice(3), seen = context.number.filter(known), low = isSure ? 0 : Math.min(...seen), high = isSure ? 1 : Math.max(...seen);
  const colour = (x) => (known(x) ? ramp(high > low ? (x - low) / (high - low) : 0.5) : REST);
  const isWhole = seen.every(Number.isInteger);
  const legend = [0, 0.25, 0.5, 0.75, 1].map((t) => { const x = low + t * (high - low); return { name: isSure ? percent(x) : sayNumber(name, isWhole ? Math.round(x) : x), colour: ramp(t) }; });
  return { of: (row) => colour(isSure ? row.probability : row[colourBy]), shape: () => "circle", key: () => null, legend };
};
const mainTopic = (row) => { const [first] = topicsOf.get(row.document) || []; return first ? [topicName(first.topic)] : []; };
const byCount = (get) => {
  const counts = new Map();
  for (const row of points) for (const name of get(row)) counts.set(name, (counts.get(name) || 0) + 1);
  return [...counts.entries()].sort((a, b) => b[1] - a[1]);
};
// of a document with several values the commonest counts, or the one that was asked for
const categories = (get) => {
  const sorted = byCount(get), common = onlyValue ? sorted.filter(([name]) => name === onlyValue) : sorted.slice(0, PALETTE.length);
  const colour = new Map(common.map(([name], i) => [name, onlyValue ? PALETTE[3] : PALETTE[i]])), names = [...colour.keys()];
  const key = (row) => { const own = get(row); return names.find((name) => own.includes(name)) ?? ""; };
  const legend = common.map(([name, n]) => ({ key: name, name: onlyValue ? `${name} (${many(n, "document")})` : name, colour: colour.get(name) }));
  const others = points.filter((row) => key(row) === "").length, rest = onlyValue ? `all others (${whole(others)})` : `${whole(sorted.length - common.length)} others`;
  return { of: (row) => colour.get(key(row)) || REST, shape: () => "circle", key, legend: sorted.length > common.length ? [...legend, { key: "", name: rest, colour: REST }] : legend };
};
const MAX_LEGEND = 12;
const drawLegend = (legend) => {
  const shown = wholeLegend || legend.length <= MAX_LEGEND + 1 ? legend : legend.slice(0, MAX_LEGEND);
  const made = shown.map((one) => {
    if (one.key === undefined) return signed(element("span", one.name), one.colour);
    const button = signed(element("button", one.name, { type: "button", title: "Click to show only this one, and again to show all. Shift-click to hide it." }), one.colour, one.shape);
    button.setAttribute("aria-pressed", String(!hiddenKeys.has(one.key)));
    button.onclick = (event) => {
      const others = legend.map(({ key }) => key).filter((key) => key !== one.key), isAlone = hiddenKeys.size === others.length && !hiddenKeys.has(one.key);
      if (!event.shiftKey) hiddenKeys = new Set(isAlone ? [] : others);
      else if (!hiddenKeys.delete(one.key)) hiddenKeys.add(one.key);
      lit = false;
      drawMap();
    };
    return button;
  });
  if (legend.length > MAX_LEGEND + 1)
    made.push(element("button", wholeLegend ? "fewer" : `and ${whole(legend.length - shown.length)} more`, { type: "button", className: "link", onclick: () => { wholeLegend = !wholeLegend; drawLegend(legend); } }));
  fill($("legend"), made);
};
const showAll = () => { lit = false; hits = null; hiddenKeys = new Set(); };
const startColours = (by) => {
  [colourBy, onlyValue, hiddenKeys] = [by, "", new Set()];
  const names = by === "topic" ? byCount(mainTopic) : by === "label" ? byCount((row) => (row.label ? [row.label] : [])) : DESCRIPTION.contexts[by.slice(3)]?.names ? byCount((row) => row[by] || []) : [];
  $("value").value = "";
  $("value").parentElement.hidden = names.length < 2;
  fill($("values"), names.slice(0, 2000).map(([name, n]) => element("option", many(n, "document"), { value: name })));
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
    return { x: ((x - x0) / (x1 - x0)) * w, y: h - ((y - y0) / (y1 - y0)) * h, name: fitted(calledOf(row.cluster), Math.min(240, w / 2), 12), cluster: row.cluster };
  });
  const dots = points.map((row) => [((row.x - x0) / (x1 - x0)) * w, h - ((row.y - y0) / (y1 - y0)) * h]);
  return withoutOverlap(wanted, w, h, 12, "middle", dots).map((one) => ({ ...one, x: x0 + (one.x / w) * (x1 - x0), y: y0 + ((h - one.y) / h) * (y1 - y0), ink: css("--ink"), halo: css("--paper") }));
};
const mapPoints = () => {
  const colour = colouring(), size = points.length > 3000 ? 16 : points.length > 400 ? 30 : 70;
  drawLegend(colour.legend);
  const doubtful = left !== DESCRIPTION.recommended ? 0 : points.filter((row) => row.probability < MIN_SURE).length;
  fill($("unsure"), doubtful ? [` Hollow dots: ${many(doubtful, "document")} whose cluster is less than half sure. `, element("button", "List them", { type: "button", className: "link", onclick: listBetween })] : []);
  const lights = hits || lit || hiddenKeys.size, isLit = (row) => (hits ? hits.has(row.document) : lit ? groupOf.get(row) === chosen : !hiddenKeys.has(colour.key(row)));
  $("hits").textContent = hits ? `${many(points.filter(isLit).length, "document")} found by the search ${points.filter(isLit).length === 1 ? "is" : "are"} lit. Click between the dots to show all.` : "";
  const drawn = points.map((row) => {
    const inside = isLit(row), sure = row.probability >= MIN_SURE || left !== DESCRIPTION.recommended;
    return { x: row.x, y: row.y, document: row.document, colour: inside ? colour.of(row) : REST, shape: colour.shape(row), inside: !sure ? 0 : inside ? 0.85 : 0.35, opacity: inside ? 0.9 : 0.35, size: inside && lights ? size * 1.5 : size, lit: inside };
  });
  return lights ? drawn.sort((a, b) => a.lit - b.lit) : drawn; // what is lit lies on top
};
const factsOf = (row) => {
  const facts = noClusters ? [] : [`${nameOf(groupOf.get(row))}${left !== DESCRIPTION.recommended ? ` (recommended: ${nameOf(row.cluster)})` : ""}`, `${percent(row.probability)} sure that it belongs to ${left === DESCRIPTION.recommended && groupOf.get(row) === row.cluster ? "this cluster" : `cluster ${row.cluster}`}`];
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
      showAll();
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
// the wheel scrolls the page, but with a modifier, or once the map was clicked
$("map").addEventListener("pointerdown", () => $("map").focus({ preventScroll: true }));
$("map").addEventListener("wheel", (event) => { if (!event.ctrlKey && !event.metaKey && !event.shiftKey && document.activeElement !== $("map")) event.stopPropagation(); }, { capture: true, passive: true });
$("zoom-in").onclick = () => zoom(0.8);
$("zoom-out").onclick = () => zoom(1.25);
$("zoom-reset").onclick = wholeMap;
document.addEventListener("mouseover", (event) => { if (!event.target.closest(".chart")) showTip(""); });
