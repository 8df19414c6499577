// -- shares side by side ---------------------------------------------------------------------------------------
let compareWhat = noClusters || noGroups ? "topic" : "cluster", picks = [];
const MAX_PICKS = 8, MAX_VARIABLES = 4;
let allVariables = false;
const nameOfPick = (number) => (compareWhat === "cluster" ? nameOf(number) : topicName(number));
const shortOf = (number) => (compareWhat === "cluster" ? calledOf(number) : byTopic.get(number).name);
const choices = () => (compareWhat === "cluster" ? groups.slice(0, 500).map((row) => row.cluster) : topics.slice(0, 200).map((row) => row.topic));
const startPicks = () => { picks = choices().slice(0, 3); };
// which shares change over a number by more than chance explains, the largest changes first
const MAX_TRENDS = 8;
const sayTrends = (name) => {
  const of = compareWhat === "cluster" ? numbers : topicNumbers, all = choices().flatMap((one) => (of.get(one) || []).filter((row) => row.context === name).map((row) => ({ ...row, called: shortOf(one) })));
  const part = (verb, sign) => {
    const rows = all.filter((row) => row.is_notable && sign * row.trend > 0).sort((a, b) => sign * (b.trend - a.trend)), more = rows.length - MAX_TRENDS;
    return rows.length ? [`The share ${verb} with ${name} by more than chance explains for: ${rows.slice(0, MAX_TRENDS).map((row) => row.called).join("; ")}${more > 0 ? `; and ${whole(more)} more` : ""}.`] : [];
  };
  const said = [...part("rises", 1), ...part("falls", -1)];
  return said.length ? said.join(" ") : `No ${compareWhat} shows a trend with ${name} beyond chance.`;
};
// which values are more common in which cluster or topic than chance explains, the largest clusters or topics first
const MAX_NOTABLE = 4;
const sayValues = (name) => {
  const of = compareWhat === "cluster" ? values : topicValues;
  const parts = choices().flatMap((one) => {
    const rows = (of.get(one) || []).filter((row) => row.context === name && row.is_notable && row.lift > 1).sort((a, b) => b.lift - a.lift), more = rows.length - MAX_NOTABLE;
    return rows.length ? [`${rows.slice(0, MAX_NOTABLE).map((row) => row.value).join(", ")}${more > 0 ? ` and ${whole(more)} more` : ""} (${shortOf(one)})`] : [];
  });
  const rest = parts.length - MAX_TRENDS, what = `${compareWhat}s`;
  if (!parts.length) return `No ${compareWhat} is more common in a ${name} than chance explains.`;
  return `More common than chance explains: ${parts.slice(0, MAX_TRENDS).join("; ")}${rest > 0 ? `; and in ${whole(rest)} more ${what}` : ""}.`;
};
const drawCompare = () => {
  $("compare-part").hidden = !variables.length || !topics.length;
  if (!variables.length || !topics.length) return;
  const possible = choices();
  picks = picks.filter((one) => possible.includes(one));
  const first = compareWhat === "cluster" ? chosen : topic;
  const shown = [...(possible.includes(first) ? [first] : []), ...picks.filter((one) => one !== first)];
  fill($("compare-add"), [element("option", "…", { value: "" }), ...possible.filter((one) => !shown.includes(one)).map((one) => element("option", cutTo(nameOfPick(one), 60), { value: one }))]);
  const colour = new Map(shown.map((one, i) => [one, PALETTE[i % PALETTE.length]]));
  const shapeOf = (i) => SHAPES[i % SHAPES.length];
  fill($("picks"), shown.map((one) => {
    const pick = signed(element("span", shortOf(one), { className: "pick", title: nameOfPick(one) }), colour.get(one), shapeOf(shown.indexOf(one)));
    if (one !== first) {
      const button = element("button", "×", { type: "button", onclick: () => { picks = picks.filter((other) => other !== one); drawCompare(); } });
      button.setAttribute("aria-label", `Remove ${nameOfPick(one)}`);
      pick.append(" ", button);
    }
    return pick;
  }));
  const what = compareWhat === "cluster" ? "documents" : TOKENS, asked = variables.slice(0, allVariables ? variables.length : MAX_VARIABLES);
  if ($("compare").children.length !== asked.length)
    fill($("compare"), asked.map(({ name, role }, i) => {
      const one = element("div", null, { className: "block" }), chart = element("div", null, { id: `compare-${i}`, className: "chart" });
      one.append(element("h3", name === role ? name : `${name} (${role})`), element("p", null, { className: "trends" }), element("p", null, { className: "soft small" }), chart);
      return one;
    }));
  asked.forEach((variable, i) => {
    const { name } = variable, title = `Share of ${compareWhat}s among the ${what} by ${name}`;
    const trends = $(`compare-${i}`).parentElement.querySelector(".trends");
    trends.hidden = choices().length < 2;
    if (!trends.hidden) trends.textContent = (variable.number ? sayTrends : sayValues)(name);
    $(`compare-${i}`).previousElementSibling.textContent = `For each ${variable.number ? "interval of " : ""}${name}: share of the ${what} in each ${compareWhat}`;
    const rows = shown.flatMap((one, series) => inOrder(sharesOf(compareWhat, one, name), name).map((row, place) => ({ ...row, place, series, name: nameOfPick(one), colour: colour.get(one), shape: shapeOf(series) })));
    const say = (d) => `${variable.number ? step(name, d) : d.value}\n${d.name}\n${sayShare(d)}\n${many(d.documents, "document")}`;
    const columns = ({ name: of, documents: n, share, low, high, ...row }) => ({ ...(variable.number ? { start: row.start, end: row.end } : { value: row.value }), of, documents: n, share, low, high });
    draw(`compare-${i}`, variable.number ? "trend" : "groups", variable.number ? { trend: rows } : { groups: rows }, say, title, { rows: rows.map(columns), isDate: variable.date });
  });
  const several = known(told["clusters in 90 % of the samples"]), disagree = DESCRIPTION.runs > 1 ? "runs or samples disagree" : "samples disagree", more = variables.length - asked.length;
  fill($("compare-about"), [`The charts show the share of each ${compareWhat} among the ${what} with a value, or in an interval of numbers. Bands and lines are 90 % intervals. They reflect `
    + (compareWhat === "topic" ? "how much documents differ in the topic: the longer the line, the more they differ. " : `the number of documents${several ? ` and the differences between samples: a long line means few documents, or that ${disagree}` : ". The fit has one sample, so they do not include the uncertainty of the clusters"}. `),
    ...(more ? [element("button", `and ${more} more`, { type: "button", className: "link", onclick: () => { allVariables = true; drawCompare(); } })] : [])]);
};

// -- the heat map ----------------------------------------------------------------------------------------------
const MAX_ROWS = 40, MAX_COLUMNS = 30, MIN_WIDTH = 14;
const heatColour = (t) => between(dark() ? [[29, 33, 39], [20, 84, 120], [40, 150, 170], [170, 225, 190]] : [[246, 247, 249], [158, 202, 225], [49, 130, 189], [8, 48, 107]], t);
const ratioColour = (ratio) => {
  const t = Math.max(-1, Math.min(1, Math.log2(Math.max(ratio, 1 / 64)) / 3)), grey = dark() ? [29, 33, 39] : [246, 247, 249];
  return between([dark() ? [120, 72, 30] : [226, 178, 126], grey, dark() ? [110, 170, 235] : [33, 102, 172]], (t + 1) / 2);
};
const heatCells = () => {
  const rows = groups.slice(0, MAX_ROWS), by = $("heat-by").value, cells = [], limit = config().axis.labelLimit;
  const line = (row) => fitted(`${row.number} ${row.name}`, limit, 12, "normal"), most = Math.min(MAX_COLUMNS, Math.floor(($("heat").clientWidth - limit) / MIN_WIDTH));
  if (by === "") {
    const columns = listedTopics.slice(0, most);
    const of = new Map(rows.map((row) => [row.cluster, new Map((usedBy.get(row.cluster) || []).map((one) => [one.topic, one.share_of_cluster]))]));
    for (const [down, row] of rows.entries())
      for (const [across, one] of columns.entries())
        cells.push({ down, across, row: line(row), column: fitted(`${one.topic} ${one.name}`, Math.min(170, limit), 11, "normal"), share: of.get(row.cluster).get(one.topic) ?? 0, average: one.share, cluster: row.cluster, topic: one.topic });
    return { cells, more: topics.length - columns.length, what: "topics" };
  }
  const variable = aboutVariable.get(by), known = groups.length ? sharesOf("cluster", rows[0].cluster, by).length : 0, shown = variable.number ? known : Math.min(known, most);
  for (const [down, row] of rows.entries())
    for (const [across, one] of inOrder(sharesOf("cluster", row.cluster, by).slice(0, shown), by).entries())
      cells.push({ down, across, row: line(row), column: variable.number ? step(by, one) : cutTo(one.value, 30), share: one.share, low: one.low, high: one.high, documents: one.documents, average: row.share, cluster: row.cluster, isChance: !one.is_notable });
  return { cells, more: known - shown, what: by };
};
const drawHeat = () => {
  $("heat-part").hidden = noClusters || groups.length < 2 || !$("heat-by").options.length;
  if ($("heat-part").hidden) return;
  const { cells, more, what } = heatCells(), isRatio = $("heat-as").value === "ratio", most = Math.max(...cells.map((one) => one.share), 1e-9);
  for (const cell of cells) {
    cell.ratio = cell.average > 0 ? cell.share / cell.average : null;
    // nothing there is quiet in both, and not the far end of a scale of ratios
    cell.colour = cell.share === 0 && !(isRatio && cell.isChance) ? heatColour(0) : isRatio ? ratioColour(cell.isChance ? 1 : cell.ratio ?? 1) : heatColour(Math.sqrt(cell.share / most));
    cell.text = `${cell.row}\n${cell.column}\n${sayShare(cell)}${cell.documents ? ` of ${many(cell.documents, "document")}` : ` of its ${TOKENS}`}\n${cell.isChance ? "the difference from the average may be due to chance" : known(cell.ratio) ? `${times(cell.ratio)} the average` : ""}`;
  }
  const marks = isRatio ? [["none", heatColour(0)], ...[0.125, 0.5, 1, 2, 8].map((one) => [`${one}×`, ratioColour(one)])] : [0, 0.25, 0.5, 1].map((t) => [percent(t * t * most), heatColour(t)]);
  fill($("heat-legend"), marks.map(([text, dot]) => { const one = element("span", text); one.style.setProperty("--dot", dot); return one; }));
  const left_out = [groups.length > MAX_ROWS ? `${whole(groups.length - MAX_ROWS)} smaller clusters` : "", more > 0 ? `${whole(more)} less common ${what === "topics" ? "topics" : "values"}` : ""].filter(Boolean);
  $("heat-about").textContent = (what === "topics" ? `The share of each topic in the ${TOKENS} of a cluster.` : `The share of each cluster among the documents of each ${what}.`)
    + ` The average is the average over all documents.${isRatio && what !== "topics" ? " Cells that do not differ from it by more than chance explains have the colour of the average." : ""}` + (left_out.length ? ` Not shown: ${left_out.join(" and ")}.` : "");
  draw("heat", "heat", { cells }, (d) => d.text, `Heat map of clusters by ${what}`, {
    rows: cells.map(({ colour, text, down, across, ...rest }) => rest),
    click: (d) => { if (d?.cluster) show(d.cluster, !d.topic); if (d?.topic) chooseTopic(d.topic, true); },
  });
};

// -- cuts as a tree ------------------------------------------------------------------------------------------
const MAX_LEAVES = 40, LEAF = 21;
const drawTree = () => {
  // without groups, the clusters of the fit are shown only if the reader asks for them
  $("tree-part").hidden = sizes.length < 2 || (noGroups && left === 1);
  if ($("tree-part").hidden) return;
  const last = left <= MAX_LEAVES && left > 1 ? left : sizes.filter((n) => n <= MAX_LEAVES).at(-1), used = sizes.filter((n) => n <= last);
  const children = new Map();
  for (const size of used.slice(1)) for (const row of byCut.get(size) || []) children.has(row.joins) ? children.get(row.joins).push(row) : children.set(row.joins, [row]);
  const roots = (byCut.get(used[0]) || []), at = new Map(), reach = narrow() ? 0.5 : 0.66;
  const column = (size) => 0.01 + (used.length > 1 ? (used.indexOf(size) / (used.length - 1)) * (reach - 0.01) : 0);
  let n = 0;
  const place = (row) => {
    const below = (children.get(row.cluster) || []).sort((a, b) => b.documents - a.documents);
    const spots = below.map(place);
    at.set(row.cluster, { row, x: column(row.cut), y: spots.length ? (spots[0].y + spots.at(-1).y) / 2 : n++, below });
    return at.get(row.cluster);
  };
  roots.forEach(place);
  const flip = (y) => 1 - (y + 0.5) / n, stems = [], joints = [], height = n * LEAF;
  for (const { row, x, y, below } of at.values()) {
    for (const one of below) {
      const to = at.get(one.cluster);
      stems.push({ x, y: flip(to.y), x2: to.x, y2: flip(to.y), colour: css("--soft") });
      if (to.y !== y) stems.push({ x, y: flip(y), x2: x, y2: flip(to.y), colour: css("--soft") });
    }
    if (below.length !== 1) joints.push({ x, y: flip(y), cluster: row.cluster, size: row.cluster === chosen ? 110 : 45, colour: colours.get(row.cluster) || css("--soft") });
  }
  const labels = (view) => {
    const w = view.signal("width");
    // how far a name at a joint may go: to the next line that it would lie on
    const room = (x, y) => Math.min(220, ...stems.map((one) => {
      const [left, right] = [one.x * w, one.x2 * w], [top, bottom] = [one.y, one.y2].map((at) => (1 - at) * height).sort((a, b) => a - b);
      return right > x + 4 && bottom > y - 9 && top < y + 9 ? Math.max(left - x, 0) - 14 : Infinity;
    }));
    const wanted = [...at.values()].filter(({ below }) => below.length !== 1).sort((a, b) => (a.below.length > 0) - (b.below.length > 0) || b.row.documents - a.row.documents)
      .map(({ row, x, y, below }) => {
        const count = below.length || narrow() ? "" : ` (${whole(row.documents)})`, place = { x: x * w, y: (1 - flip(y)) * height };
        const most = below.length ? room(place.x, place.y) : w * (1 - reach) - 18 - widthOf(count, 11);
        return { x: place.x + 9, y: place.y, cluster: row.cluster, ink: below.length ? css("--soft") : css("--ink"), halo: css("--panel"), name: most > 60 ? fitted(calledOf(row.cluster), most, 11) + count : "" };
      }).filter((one) => one.name);
    return withoutOverlap(wanted, w, height, 11, "start").map((one) => ({ ...one, x: one.x / w, y: 1 - one.y / height }));
  };
  draw("tree", "tree", { stems, joints, labels }, (d) => (d.cluster ? `${nameOf(d.cluster)}\n${many(nodes.get(d.cluster).documents, "document")}` : ""), `Levels, from ${used[0]} to ${last} clusters`, {
    height,
    rows: [...at.values()].map(({ row }) => ({ cut: row.cut, cluster: row.cluster, name: row.name, documents: row.documents, joins: row.joins })),
    click: (d) => { if (d?.cluster) { lit = true; chosen = d.cluster; slider.value = sizes.indexOf(nodes.get(d.cluster).cut); setLeft(nodes.get(d.cluster).cut); $("panel-title").focus(); } },
  });
};

// -- the map of topics -----------------------------------------------------------------------------------------
const drawTopicMap = () => {
  const shown = topics.filter((row) => known(row.x));
  if (!shown.length) return;
  const most = Math.max(...shown.map((row) => row.share)), x = (row) => 0.08 + row.x * 0.84, y = (row) => 0.08 + row.y * 0.84;
  const colour = (row) => (litWord ? (withWord(litWord).some((one) => one.topic === row.topic) ? PALETTE[3] : REST) : row.topic === topic ? PALETTE[1] : isCoherent(row) ? css("--accent") : REST), size = (row) => 30 + (row.share / most) * 1600;
  // a name would hide a small disc
  const above = (row) => { const radius = Math.sqrt(size(row) / Math.PI); return radius < 9 ? radius + 8 : 0; };
  const discs = shown.map((row) => ({ topic: row.topic, name: row.name, share: row.share, x: x(row), y: y(row), size: size(row), colour: colour(row) }));
  const labels = (view) => {
    const w = view.signal("width"), h = view.signal("height");
    const wanted = shown.slice().sort((a, b) => (b.topic === topic) - (a.topic === topic) || b.share - a.share)
      .map((row) => ({ x: x(row) * w, y: (1 - y(row)) * h - above(row), topic: row.topic, name: fitted(row.name, Math.min(220, 0.42 * w), 11), ink: css("--ink"), halo: css("--paper") }));
    return withoutOverlap(wanted, w, h, 11).map((one) => ({ ...one, x: one.x / w, y: 1 - one.y / h }));
  };
  $("topic-map-about").textContent = shown.every(isCoherent) ? "" : " Grey: not coherent.";
  draw("topic-map", "topics", { topics: discs, labels }, (d) => (d.topic ? `${topicName(d.topic)}\n${percent(byTopic.get(d.topic).share)} of the ${TOKENS}` : ""), `Map of ${many(shown.length, "topic")}`, {
    rows: discs.map(({ colour: _, size, ...rest }) => rest),
    click: (d) => { if (d?.topic) nearTopic(d.topic); },
  });
};
