// -- documents that came after the fit ---------------------------------------------------------------------------
const arrivals = rowsOf(T.arrivals);
const drawArrivals = () => {
  $("arrivals-part").hidden = !arrivals.length;
  if (!arrivals.length) return;
  const last = arrivals.at(-1), fits = $("arrivals-fit");
  fits.textContent = last.warnings ? `The model may no longer fit: ${last.warnings}.` : "The documents of the last update fit the model as those before did.";
  fits.className = last.warnings ? "warning" : "soft";
  const say = (of) => (d) => `update ${d.update}, ${d.file}\n${of} ${digits(d.value)}\n${many(d.documents, "document")}`;
  const course = (id, name, factor, of, label) => {
    const rows = arrivals.map((row) => ({ ...row, value: factor * row[name], colour: row.warnings ? "#e15759" : css("--accent") }));
    draw(id, "course", { course: rows }, say(of), label, { rows: rows.map(({ update, file, so_far }, i) => ({ update, file, so_far, [name]: arrivals[i][name] })) });
  };
  course("arrivals-likelihood", "log_likelihood", 1, "nats a word", "Log likelihood a word by update");
  course("arrivals-small", "in_small", 100, "% of the documents", "Share of documents in clusters that were small or empty by update");
  const head = ["update", "file", "documents", "nats a word", "small clusters", "left out", "clusters", "topics"];
  fill($("arrivals-table"), [tableOf(head, arrivals.map((row) => [row.update, row.file, whole(row.documents), digits(row.log_likelihood), percent(row.in_small), percent(row.left_out),
    `+${row.clusters_born} −${row.clusters_gone}`, `+${row.topics_born} −${row.topics_gone}`]))]);
};
