// -- on paper ---------------------------------------------------------------------------------------------------
// links to the sections, and on paper each cluster of the cut once
const listSections = () => { for (const one of $("contents").children) one.hidden = document.querySelector(one.hash).hidden; };
const MAX_PRINTED = 100, PRINTED_VALUES = 5;
const printedOf = (row) => {
  const node = row.cluster, made = block(element("h3", nameOf(node)), element("p", [`${many(row.documents, "document")}, ${percent(row.share)} of all`, ...(known(row.found) && !isWhole(node) ? [sayFound(row)] : [])].join(" · ")));
  const say = (name, values) => { if (values.length) made.append(element("p", `${name}: ${values.join("; ")}`)); };
  say(ofObservations ? "Means" : "Words", ofObservations ? (clusterMeans.get(node) || []).map((one) => `${one.name} ${digits(one.mean)}`) : relevant(words.get(node) || [], weightOf(node, WEIGHT)).map((one) => one.word));
  for (const [name, rows] of grouped(values.get(node) || [], "context"))
    say(name, rows.filter((one) => one.by_share <= PRINTED_VALUES).sort((a, b) => a.by_share - b.by_share).map((one) => `${one.value} ${percent(one.share)}`));
  for (const one of numbers.get(node) || []) say(one.context, [sayNumbers(one)]);
  if (topics.length) say("Topics", (usedBy.get(node) || []).slice().sort((a, b) => b.share_of_cluster - a.share_of_cluster).slice(0, PRINTED_VALUES).map((one) => `${byTopic.get(one.topic).name} ${percent(one.share_of_cluster)}`));
  say("Typical documents", (typical.get(node) || []).slice(0, PRINTED_VALUES).map((one) => byDocument.get(one.document)?.title ?? `document ${one.document}`));
  return made;
};
const fillPrinted = () => {
  if (noClusters) return;
  const first = groups.slice(0, MAX_PRINTED);
  fill($("printed-list"), first.map(printedOf));
  if (first.length < groups.length) $("printed-list").append(element("p", `Only the ${whole(first.length)} largest of ${many(groups.length, "cluster")} are printed.`));
};
addEventListener("beforeprint", fillPrinted);
matchMedia("print").addEventListener("change", fillPrinted);
