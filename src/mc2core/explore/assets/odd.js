// -- what is odd -----------------------------------------------------------------------------------------------
// documents that no cluster fits well, and those whose words are unlike their cluster's
const MAX_MISFIT = 3, MAX_ODD = 500;
let oddBy = "misfit", oddDown = true;
const odd = documents.filter((row) => row.probability < MIN_SURE || row.misfit > MAX_MISFIT);
const ODD = { title: ["document", (row) => row.title], cluster: ["cluster of the fit", (row) => nodes.get(row.cluster)?.name ?? String(row.cluster)],
  probability: ["probability", (row) => percent(row.probability)], misfit: ["misfit", (row) => digits(row.misfit && +row.misfit.toFixed(1))], tokens: [TOKENS, (row) => whole(row.tokens)] };
const drawOdd = () => {
  $("odd-part").hidden = !odd.length;
  const key = (row) => (typeof row[oddBy] === "string" ? row[oddBy].toLowerCase() : oddBy === "cluster" ? ODD.cluster[1](row) : row[oddBy] ?? -Infinity);
  const rows = odd.slice().sort((a, b) => { const [x, y] = [key(a), key(b)]; return (x < y ? -1 : x > y) * (oddDown ? -1 : 1); });
  $("odd-about").textContent = `${many(rows.length, "document")}${ofMap}: no cluster is at least ${percent(MIN_SURE)} probable, or the misfit is above ${MAX_MISFIT}. The misfit says how much less the ${TOKENS} of a document overlap`
    + ` with its cluster than those of documents of its length (in standard deviations).${rows.length > MAX_ODD ? ` The first ${MAX_ODD} are shown.` : ""}`;
  const table = tableOf([], []), head = element("tr"), names = Object.keys(ODD).filter((name) => !(noClusters && ["cluster", "probability"].includes(name)) && rows.some((row) => known(row[name])));
  for (const name of names) {
    const cell = element("th"), button = element("button", `${ODD[name][0]}${name === oddBy ? (oddDown ? " ▾" : " ▴") : ""}`, { type: "button", className: "link" });
    button.onclick = () => { [oddBy, oddDown] = [name, name === oddBy ? !oddDown : name === "misfit" || name === "tokens"]; drawOdd(); };
    if (name === oddBy) cell.setAttribute("aria-sort", oddDown ? "descending" : "ascending");
    cell.append(button);
    head.append(cell);
  }
  table.tHead.replaceChildren(head);
  for (const row of rows.slice(0, MAX_ODD)) {
    const made = line(names.map((name) => ODD[name][1](row)), "td"), open = element("button", row.title, { type: "button", className: "link", onclick: () => opens(row, markedOfCluster(groupOf.get(row)))() });
    made.firstChild.replaceChildren(open);
    table.tBodies[0].append(made);
  }
  fill($("odd"), [table]);
};
const listOdd = (by) => {
  [oddBy, oddDown] = [by, by === "misfit"];
  drawOdd();
  $("odd-title").focus();
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
const allNames = () => [...[...nodes.values()].map((row) => ({ of: "cluster", number: row.cluster, name: row.name })), ...topics.map((row) => ({ of: "topic", number: row.topic, name: row.name }))];
for (const one of document.querySelectorAll(".save-names")) one.onclick = () => saveText("names.csv", toCsv(allNames()), "text/csv");
