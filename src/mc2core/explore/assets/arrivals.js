// -- documents that came after the fit ---------------------------------------------------------------------------
const arrivals = rowsOf(T.arrivals);
const drawArrivals = () => {
  $("arrivals-part").hidden = !arrivals.length;
  if (!arrivals.length) return;
  const last = arrivals.at(-1), fits = $("arrivals-fit");
  fits.textContent = last.warnings ? `The model may no longer fit: ${last.warnings}.` : "The documents of the last update fit the model as well as the earlier ones.";
  fits.className = last.warnings ? "warning" : "soft";
  const say = (of) => (d) => `update ${d.update}, ${d.file}\n${of} ${digits(d.value)}\n${many(d.documents, "document")}`;
  const course = (id, name, factor, of, label) => {
    const rows = arrivals.map((row) => ({ ...row, value: factor * row[name], colour: row.warnings ? "#e15759" : css("--accent") }));
    draw(id, "course", { course: rows }, say(of), label, { rows: rows.map(({ update, file, so_far }, i) => ({ update, file, so_far, [name]: arrivals[i][name] })) });
  };
  course("arrivals-likelihood", "log_likelihood", 1, "nats per word", "Log likelihood per word by update");
  course("arrivals-small", "in_small", 100, "% of the documents", "Share of documents in clusters that were small or empty by update");
  const wide = [["update", (row) => row.update], ["documents", (row) => whole(row.documents)], ["nats per word", (row) => digits(row.log_likelihood)], ["small clusters", (row) => percent(row.in_small)]];
  if (!narrow()) wide.splice(1, 0, ["file", (row) => row.file]);
  if (!narrow()) wide.push(["left out", (row) => percent(row.left_out)], ["clusters", (row) => `+${row.clusters_born} −${row.clusters_gone}`], ["topics", (row) => `+${row.topics_born} −${row.topics_gone}`]);
  fill($("arrivals-table"), [tableOf(wide.map(([name]) => name), arrivals.map((row) => wide.map(([, say]) => say(row))))]);
};
