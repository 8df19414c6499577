// -- long lists ------------------------------------------------------------------------------------------------
// Of a long list, the first rows are shown, and a button shows all. On paper, the button says how many there are.
const wholeLists = new Set(), MAX_MADE = 500;
const shorten = (list, first, what, key = list.id, n = list.children.length, redraw = null) => {
  const rows = [...list.children], isWhole = wholeLists.has(key), after = list.closest("table") ?? list;
  rows.forEach((row, i) => row.classList.toggle("beyond", !isWhole && i >= first && !row.querySelector("[aria-current]")));
  if (after.nextElementSibling?.classList.contains("more")) after.nextElementSibling.remove();
  if (rows.length <= first) return;
  const button = element("button", isWhole ? `Show the first ${first}` : `Show all ${many(n, what)}`, { type: "button", className: "more" });
  button.dataset.print = isWhole ? "" : `${whole(first)} of ${many(n, what)}`;
  button.onclick = () => {
    if (!wholeLists.delete(key)) wholeLists.add(key);
    if (redraw) redraw();
    else shorten(list, first, what, key);
  };
  after.after(button);
};
// -- lists of documents ----------------------------------------------------------------------------------------
const MAX_MISFIT = 3, FIRST_DOCUMENTS = 20, TOO_SHORT = 10;
const nextOf = new Map(rowsOf(T.document_clusters).map((row) => [row.document, row]));
const clusterName = (number) => (nodes.has(number) ? calledOf(number) : String(number));
const sayNext = (row) => { const next = nextOf.get(row.document); return next ? `${clusterName(next.cluster)} (${percent(next.probability)})` : "–"; };
const sayLength = (row) => `${whole(row.tokens)}${!ofObservations && row.tokens < TOO_SHORT ? " (too short to judge)" : ""}`;
// of each column its title, its text and what it is sorted by
const COLUMNS = {
  title: ["document", (row) => row.title],
  cluster: ["cluster", (row) => clusterName(row.cluster)],
  probability: ["certainty", (row) => percent(row.probability), (row) => row.probability],
  next: ["other likely cluster (certainty)", sayNext, (row) => nextOf.get(row.document)?.probability],
  misfit: ["misfit", (row) => digits(row.misfit && +row.misfit.toFixed(1)), (row) => row.misfit],
  tokens: [TOKENS, sayLength, (row) => row.tokens],
};
const countOf = (rows) => many(rows.length, "document") + ofMap;
const listing = (id, rows, names, state, marks = (row) => markedOfCluster(groupOf.get(row))) => {
  const { by, down } = state, box = $(id), [, say, value] = COLUMNS[by], key = value ? (row) => value(row) ?? -Infinity : (row) => say(row).toLowerCase();
  const sorted = rows.slice().sort((a, b) => { const [x, y] = [key(a), key(b)]; return (x < y ? -1 : x > y) * (down ? -1 : 1); });
  const table = tableOf([], []), head = element("tr");
  table.classList.add("documents-table");
  for (const name of names) {
    const cell = element("th"), button = element("button", `${COLUMNS[name][0]}${name === by ? (down ? " ▾" : " ▴") : ""}`, { type: "button", className: "link" });
    button.onclick = () => { Object.assign(state, { by: name, down: name === by ? !down : ["misfit", "tokens", "next"].includes(name) }); listing(id, rows, names, state, marks); };
    if (name === by) cell.setAttribute("aria-sort", down ? "descending" : "ascending");
    cell.append(button);
    head.append(cell);
  }
  table.tHead.replaceChildren(head);
  for (const row of wholeLists.has(id) ? sorted : sorted.slice(0, MAX_MADE)) {
    const made = line(names.map((name) => COLUMNS[name][1](row)), "td"), open = element("button", row.title, { type: "button", className: "link" });
    // the list becomes narrower beside the text: the row stays where it was
    open.onclick = () => {
      const before = open.getBoundingClientRect().top;
      openDocument(row.document, marks(row));
      scrollBy(0, open.getBoundingClientRect().top - before);
    };
    made.firstChild.replaceChildren(open);
    table.tBodies[0].append(made);
  }
  fill(box, [table]);
  shorten(table.tBodies[0], FIRST_DOCUMENTS, "document", id, rows.length, () => listing(id, rows, names, state, marks));
};

// -- what is odd -----------------------------------------------------------------------------------------------
// documents that no cluster fits well, and those whose cluster is unsure
const misfits = documents.filter((row) => known(row.misfit) && +row.misfit.toFixed(1) > MAX_MISFIT), undecided = noClusters ? [] : documents.filter((row) => row.probability < MIN_SURE);
const isOne = noClusters || Boolean(noGroups), expectedMisfits = 0.00135 * documents.length;
// the probability of at least n where so many are expected (Poisson)
const atLeast = (n, mean) => { let term = Math.exp(-mean), below = 0; for (let i = 0; i < n; i++) { below += term; term *= mean / (i + 1); } return 1 - below; };
const ODD = {
  misfits: [misfits, isOne ? ["title", "misfit", "tokens"] : ["title", "cluster", "misfit", "tokens"], { by: "misfit", down: true },
    `The ${TOKENS} of these documents differ from the ${TOKENS} of ${isOne ? "the other documents" : "their cluster"}. The misfit is the number of standard deviations by which a document overlaps less with ${isOne ? "all documents" : "its cluster"} than documents of the same length usually do. Documents with a misfit above ${MAX_MISFIT} are listed. By chance alone, about ${short(expectedMisfits)} of ${many(documents.length, "document")} would be listed.${atLeast(misfits.length, expectedMisfits) > 0.01 ? ` Chance may explain ${misfits.length === 1 ? "this one" : `these ${whole(misfits.length)}`}.` : ""}`],
  between: [undecided, ["title", "cluster", "probability", "next", "tokens"], { by: "probability", down: false },
    `The probability that these documents belong to their cluster is below ${percent(MIN_SURE)}. The least certain come first.`],
};
const drawOdd = () => {
  $("odd-part").hidden = !misfits.length && !undecided.length;
  if (isOne) $("misfits").firstElementChild.firstChild.textContent = "Least like the other documents ";
  for (const [id, [rows, names, state, about]] of Object.entries(ODD)) {
    const part = $(id);
    part.hidden = !rows.length;
    part.querySelector("output").textContent = `(${countOf(rows)}, ${percent(rows.length / documents.length)})`;
    part.querySelector("p").textContent = about + (!ofObservations && rows.some((row) => row.tokens < TOO_SHORT) ? ` Texts of fewer than ${TOO_SHORT} words are too short to judge.` : "");
    listing(`${id}-list`, rows, narrow() ? names.filter((name) => name !== "tokens" && (id === "misfits" || name !== "cluster")) : names, state);
  }
};
const listBetween = () => $("between").querySelector("h3").focus();

// -- all documents of a cluster --------------------------------------------------------------------------------
const memberOrder = { by: "probability", down: true };
const drawMembers = () => {
  const rows = documents.filter((row) => groupOf.get(row) === chosen), isOfFit = left === DESCRIPTION.recommended && !noClusters;
  if (!isOfFit && memberOrder.by === "probability") Object.assign(memberOrder, { by: "title", down: false });
  $("members").querySelector("p").textContent = ofMap ? `${countOf(rows)}.` : "";
  listing("members-list", rows, ["title", ...(isOfFit ? ["probability"] : []), "tokens"], memberOrder);
};
const offerMembers = () => {
  const said = `All ${many(nodes.get(chosen).documents, "document")}`;
  $("members").querySelector("summary").textContent = isWhole(chosen) ? said : `${said} of ${nameOf(chosen)}`;
  $("to-members").textContent = said;
  if ($("members").open) drawMembers();
};
$("members").ontoggle = () => { if ($("members").open) drawMembers(); };
$("to-members").onclick = () => {
  $("members").open = true;
  drawMembers();
  $("members").scrollIntoView({ block: "nearest" });
  $("members").querySelector("summary").focus({ preventScroll: true });
};

// -- names that the reader of the report gives -------------------------------------------------------------------
const rename = (what, number, title) => {
  const row = what === "cluster" ? nodes.get(number) : byTopic.get(number), box = element("input", null, { value: row.name, className: "name" }), before = title.textContent;
  box.setAttribute("aria-label", `New name of ${before}`);
  let done = false;
  const end = (isKept) => {
    if (done) return;
    done = true;
    const name = box.value.trim();
    title.textContent = before;
    if (isKept && name && name !== row.name) {
      row.name = name;
      for (const one of document.querySelectorAll(".save-names")) one.hidden = false;
      setLeft(left);
      drawOdd();
    }
    title.focus({ preventScroll: true });
  };
  box.onkeydown = (event) => { if (event.key === "Enter" || event.key === "Escape") { event.stopPropagation(); end(event.key === "Enter"); } };
  box.onblur = () => end(true);
  fill(title, [box]);
  box.select();
};
$("rename-cluster").onclick = () => rename("cluster", chosen, $("panel-title"));
$("rename-topic").onclick = () => rename("topic", topic, $("topic-title"));
// clusters that the reader merges: each has the number of the cluster that it becomes a part of (mc2 merge --names)
const mergeable = [...nodes.values()].filter((row) => row.cut === DESCRIPTION.recommended), mergedWith = (row) => mergeable.filter((one) => one.merge && one.merge === row.merge);
const offerMerge = () => {
  const row = nodes.get(chosen), parts = mergedWith(row);
  $("merge").hidden = noClusters || noGroups || mergeable.length < 2 || row.cut !== DESCRIPTION.recommended;
  const option = (one) => element("option", nameOf(one.cluster), { value: one.cluster });
  fill($("merge-with"), [element("option", parts.length ? "(undo)" : "", { value: "" }), ...mergeable.filter((one) => one !== row).map(option)]);
  $("merge-with").value = parts.find((one) => one !== row)?.cluster ?? "";
  const groups = [...grouped(mergeable.filter((one) => one.merge), "merge").values()];
  $("merges").textContent = groups.length ? `To be merged: ${groups.map((group) => group.map((one) => nameOf(one.cluster)).join(" + ")).join("; ")}. Save names.csv, then run: mc2 merge FIT --names names.csv --out FOLDER` : "";
};
$("merge-with").onchange = ({ target }) => {
  const row = nodes.get(chosen), other = nodes.get(+target.value), rest = mergedWith(row).filter((one) => one !== row);
  if (other) for (const one of [...mergedWith(row), row, ...mergedWith(other), other]) one.merge = other.merge || other.cluster;
  else {
    row.merge = undefined;
    for (const one of rest) one.merge = rest.length > 1 ? rest[0].cluster : undefined;
  }
  for (const one of document.querySelectorAll(".save-names")) one.hidden = false;
  offerMerge();
};
const rowsOfNames = [
  ...[...nodes.values()].map((row) => ({ row, of: "cluster", number: row.cluster, level: row.cut === DESCRIPTION.recommended ? "recommended" : row.cut })),
  ...topics.map((row) => ({ row, of: "topic", number: row.topic, level: "" })),
].map((one) => ({ ...one, default: DESCRIPTION.defaults[one.of]?.[one.number] ?? one.row.name }));
// default and words tell what a name is of, should the fit change
const allNames = () => rowsOfNames.map(({ row, of, number, level, default: byWords }) => ({ of, number, level, name: row.name, default: byWords, words: row.words ?? "", ...(mergeable.some((one) => one.merge) && { merge: of === "cluster" ? row.merge ?? "" : "" }) }));
for (const one of document.querySelectorAll(".save-names")) one.onclick = () => saveText("names.csv", toCsv(allNames()), "text/csv");
