// -- charts ----------------------------------------------------------------------------------------------------
const narrow = () => innerWidth < 700;
const config = () => ({
  axis: { labelColor: css("--ink"), titleColor: css("--soft"), gridColor: css("--line"), domainColor: css("--line"), tickColor: css("--line"), titleFontWeight: "normal", labelFont: "sans-serif", titleFont: "sans-serif", labelLimit: narrow() ? 130 : 210 },
  text: { fill: css("--ink"), font: "sans-serif" }, rect: { fill: css("--accent") }, line: { stroke: css("--accent") }, symbol: { fill: css("--accent") },
});
const tip = $("tip");
// beside the pointer, on the side where there is room, and never over it
const showTip = (text, event) => {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const w = tip.offsetWidth, h = tip.offsetHeight, gap = 16;
  const right = event.clientX + gap + w <= innerWidth - 8, onLeft = event.clientX - gap - w >= 4;
  const x = right ? event.clientX + gap : onLeft ? event.clientX - gap - w : Math.max(4, (innerWidth - w) / 2);
  const below = event.clientY + gap + h <= innerHeight - 8;
  const y = right || onLeft ? Math.max(4, Math.min(event.clientY - h / 2, innerHeight - h - 8)) : below ? event.clientY + gap : event.clientY - gap - h;
  Object.assign(tip.style, { left: `${x}px`, top: `${Math.max(4, y)}px` });
};
const MONTH_OR_YEAR = "datum.value % 1 < 0.01 ? format(datum.value, 'd') : monthAbbrevFormat(floor((datum.value % 1) * 12))";
const filled = (kind, data, isDate) => {
  const spec = JSON.parse(JSON.stringify(CHARTS[kind]).replaceAll("#4c78a8", css("--accent")));
  for (const source of spec.data) if (Array.isArray(data[source.name])) source.values = data[source.name];
  for (const axis of isDate ? spec.axes.filter((one) => one.format === "~f") : []) Object.assign(axis, { format: undefined, encode: { labels: { update: { text: { signal: MONTH_OR_YEAR } } } } });
  return spec;
};

// -- saving ----------------------------------------------------------------------------------------------------
const toCsv = (rows) => {
  const names = [...new Set(rows.flatMap(Object.keys))];
  const cell = (x) => (x === null || x === undefined ? "" : /[",\n\r]/.test(x) ? `"${String(x).replaceAll('"', '""')}"` : String(x));
  return [names, ...rows.map((row) => names.map((name) => row[name]))].map((row) => row.map(cell).join(",")).join("\n") + "\n";
};
const download = (name, url) => element("a", null, { href: url, download: name }).click();
const saveText = (name, text, type) => {
  const url = URL.createObjectURL(new Blob([text], { type }));
  download(name, url);
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
};
const fileName = (label) => label.normalize("NFKD").replace(/[^\w]+/g, "-").replace(/^-|-$/g, "").slice(0, 60).toLowerCase() || "table";
const saver = (text, label, action) => {
  const button = element("button", text, { type: "button", onclick: action });
  button.setAttribute("aria-label", `Save as ${text}: ${label}`);
  return button;
};
const savePicture = async (entry, kind) => {
  const name = `${fileName(entry.label)}.${kind}`;
  await entry.view.background(css("--paper")).runAsync();
  if (kind === "svg") saveText(name, await entry.view.toSVG(), "image/svg+xml");
  else download(name, await entry.view.toImageURL("png", 2));
  await entry.view.background("transparent").runAsync();
};
// the label of a picture changes with what it shows, so it is asked when one saves
const offerToSave = (box, entryOf) => {
  const bar = box.nextElementSibling?.classList.contains("saves") ? box.nextElementSibling : element("span", null, { className: "saves" });
  const what = box.getAttribute("aria-label")?.split(".")[0] || box.id;
  fill(bar, [saver("CSV", what, () => saveText(`${fileName(entryOf().label)}.csv`, toCsv(entryOf().rows), "text/csv")), ...["svg", "png"].map((kind) => saver(kind.toUpperCase(), what, () => savePicture(entryOf(), kind)))]);
  box.after(bar);
};

// -- views -----------------------------------------------------------------------------------------------------
// Views are made asynchronously: an entry holds the newest data until its view is there, and passes them on. Data may be
// a function of the view, which is asked once it is known how large it is.
const views = new Map();
const given = (data, view) => (typeof data === "function" ? data(view) : data);
const passOn = (entry) => {
  if (entry.height) entry.view.height(entry.height);
  for (const [name, rows] of Object.entries(entry.data)) entry.view.data(name, given(rows, entry.view));
  entry.view.resize().run(); // labels of an axis take more or less room
  const canvas = entry.box.querySelector("canvas");
  if (canvas) Object.entries({ role: "img", "aria-label": entry.label }).forEach(([name, value]) => canvas.setAttribute(name, value));
};
// data: rows by source of the chart; say: what hovering says; label: what the picture is; more: rows to save, a height,
// what a click does
const draw = (id, kind, data, say, label, more = {}) => {
  const box = $(id), now = { data, say, label, rows: Object.values(data).find(Array.isArray), ...more };
  let entry = views.get(id);
  if (entry && entry.box === box && entry.kind === kind) {
    Object.assign(entry, now);
    if (entry.view) passOn(entry);
    return entry;
  }
  entry?.view?.finalize();
  entry = { box, kind, view: null, ...now };
  const tooltip = (_, event, item) => { showTip(item && item.datum ? entry.say(item.datum) : "", event); entry.hover?.(item?.datum); };
  entry.ready = vegaEmbed(box, filled(kind, data, more.isDate), { mode: "vega", renderer: "canvas", actions: false, defaultStyle: false, config: config(), tooltip }).then(({ view }) => {
    if (views.get(id) !== entry) return view.finalize();
    entry.view = view;
    view.addEventListener("click", (_, item) => entry.click?.(item?.datum));
    passOn(entry);
  });
  views.set(id, entry);
  offerToSave(box, () => views.get(id));
  return entry;
};
const forget = () => {
  views.forEach((entry) => entry.view?.finalize());
  views.clear();
};
// the views take their new width first, and names their places in it
let resized = 0;
addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(() => views.forEach((entry) => entry.view?.resize().runAsync().then(() => passOn(entry))), 100);
});
addEventListener("scroll", () => showTip(""), { passive: true });

const WEIGHT = 0.3; // of the likely in names, and in the sliders at first
const relevant = (rows, weight, n = 12) => rows
  .map((row) => ({ ...row, relevance: weight * Math.log(row.probability) + (1 - weight) * Math.log(row.lift) }))
  .sort((a, b) => b.relevance - a.relevance).slice(0, n);
const times = (ratio) => (ratio >= 10 ? `${Math.round(ratio)} times` : `${short(ratio)} times`);
// of a word, the topics that most of its tokens are of, as far as the tables have them: they stand out on the map of topics
let topicsOfWord = null;
const withWord = (word) => {
  topicsOfWord ??= grouped(topics.flatMap((row) => (topicWords.get(row.topic) || []).map((one) => ({ word: one.word, topic: row.topic, share: Math.min(1, row.share * one.lift) }))), "word");
  return (topicsOfWord.get(word) || []).filter((one) => one.share >= 0.01).sort((a, b) => b.share - a.share);
};
let litWord = null;
const lightWord = (word) => { if (word !== litWord) { litWord = word; drawTopicMap(); } };
const bars = (id, rows, weight, label) => {
  const data = relevant(rows, weight).map((row, place) => ({ word: row.word, probability: row.probability, lift: row.lift, everywhere: row.probability / row.lift, place }));
  draw(id, "bars", { bars: data }, (d) => `${d.word}\nprobability ${digits(d.probability)}, ${times(d.lift)} that in the whole corpus${withWord(d.word).slice(0, 4).map((one) => `\n${percent(one.share)} of it in ${topicName(one.topic)}`).join("")}`, `${label}: ${data.map((row) => row.word).join(", ")}`, { hover: (d) => lightWord(d?.word ?? null) });
};
// of each number its mean, and one standard deviation to each side, in those of all observations from their mean
const means = (id, rows, label) => {
  const data = rows.map((row, place) => {
    const at = (x) => (x - row.mean_of_all) / row.sd_of_all;
    return { ...row, value: row.name, at: at(row.mean), low: at(row.mean - row.sd), high: at(row.mean + row.sd), place };
  });
  const say = (d) => `${d.value}\nmean ${digits(d.mean)}, standard deviation ${digits(d.sd)}\nof all observations ${digits(d.mean_of_all)}, ${digits(d.sd_of_all)}`;
  draw(id, "means", { means: data }, say, `${label}: ${rows.map((row) => `${row.name} ${digits(row.mean)}`).join(", ")}`, { rows });
};
const step = (context, d) => sayStep(context, { start: d.start, end: d.end, period: d.period });
const trendCharts = (parent, what, number, whose) => {
  for (const [i, { name }] of variables.filter((one) => trends.has(`${what} ${number} ${one.name}`)).entries()) {
    const id = `${parent.id}-${i}`, block = element("div", null, { className: "block" });
    block.append(element("h3", `${whose} over ${name}`), element("div", null, { id, className: "chart" }));
    parent.append(block);
    const data = trends.get(`${what} ${number} ${name}`).map((row) => ({ ...row, name: "", colour: css("--accent"), shape: "circle" }));
    draw(id, "trend", { trend: data }, (d) => `${step(name, d)}: ${sayShare(d)}\n${many(d.documents, "document")}`, `${whose} over ${name}, ${what} ${number}`, { isDate: aboutVariable.get(name).date });
  }
};

// -- names on a picture ----------------------------------------------------------------------------------------
const pen = document.createElement("canvas").getContext("2d");
const widthOf = (text, size, weight = "bold") => { pen.font = `${weight} ${size}px sans-serif`; return pen.measureText(text).width; };
// a name in so many pixels: without its last words where it is longer, at the least cut
const fitted = (name, most, size, weight = "bold") => {
  const fits = (text) => widthOf(text, size, weight) <= most;
  if (fits(name)) return name;
  const parts = name.split(", ");
  while (parts.pop() && parts.length) if (fits(`${parts.join(", ")} …`)) return `${parts.join(", ")} …`;
  let text = name;
  while (text.length > 1 && !fits(`${text}…`)) text = text.slice(0, -1);
  return `${text}…`;
};
// Names that fit: of wanted {x, y, name} in pixels, the most important first. A name goes to the place around its anchor
// that hides the fewest dots, and is left out only if each place is outside the picture or on another name.
const withoutOverlap = (wanted, width, height, size, anchor = "middle", dots = []) => {
  const placed = [], h = size + 5;
  const around = (w) => (anchor !== "middle" ? [[0, 0]] : [[0, 0], [0, -h], [0, h], [w / 2 + 8, 0], [-w / 2 - 8, 0], [w / 2, -h], [-w / 2, -h], [w / 2, h], [-w / 2, h], [0, -2 * h], [0, 2 * h]]);
  for (const one of wanted) {
    const w = widthOf(one.name, size) + 6;
    if (one.x < 0 || one.x > width || one.y < 0 || one.y > height || w > width) continue;
    let best = null;
    for (const [dx, dy] of around(w)) {
      const low = Math.min(Math.max((anchor === "middle" ? one.x - w / 2 : one.x - 3) + dx, 0), width - w), y = Math.min(Math.max(one.y + dy, h / 2), height - h / 2);
      const box = [low, y - h / 2, low + w, y + h / 2];
      if (placed.some(({ box: other }) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3])) continue;
      const hidden = dots.reduce((n, [a, b]) => n + (a > box[0] && a < box[2] && b > box[1] && b < box[3]), 0);
      if (!best || hidden < best.hidden) best = { ...one, box, hidden, x: anchor === "middle" ? low + w / 2 : low + 3, y };
      if (!hidden) break;
    }
    if (best) placed.push(best);
  }
  return placed;
};
