// -- texts -----------------------------------------------------------------------------------------------------
// Those of few documents are in the HTML report, others in scripts beside it, which say TEXTS(number, list) once they are asked for.
const scripts = DESCRIPTION.texts.scripts, hasTexts = scripts.length > 0, loading = new Map(), textsOfScript = new Map();
const placeOfText = new Map(scripts.flatMap((list, script) => list.map((number, i) => [number, [script, i]])));
if (DESCRIPTION.texts.inside) DESCRIPTION.texts.inside.forEach((list, i) => textsOfScript.set(i, list));
window.TEXTS = (script, list) => textsOfScript.set(script, list);
const load = (script) => {
  if (textsOfScript.has(script)) return Promise.resolve();
  if (!loading.has(script))
    loading.set(script, new Promise((resolve, reject) => {
      const asked = element("script", null, { src: `texts_${script + 1}.js` });
      asked.onload = resolve;
      asked.onerror = () => { loading.delete(script); reject(new Error(`This text is in the file texts_${script + 1}.js, which is not next to this report. The report needs all files of its folder whose names begin with texts_; ask its sender for them.`)); };
      document.head.append(asked);
    }));
  return loading.get(script);
};
const knownText = (number) => {
  const [script, i] = placeOfText.get(number) || [];
  return textsOfScript.get(script)?.[i];
};
const textOf = async (number) => {
  if (!placeOfText.has(number)) return null;
  await load(placeOfText.get(number)[0]);
  return knownText(number);
};
const allTexts = () => scripts.every((_, script) => textsOfScript.has(script));

// Words as the import counts them: whole ones, but for scripts that put no space between them; words of n-grams with any.
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;
const patternOf = (list) => {
  const one = (word) => {
    const safe = word.replaceAll(/[.*+?^${}()|[\]\\/]/g, "\\$&").replaceAll(/[ _]+/g, "[\\s_]+");
    return UNSPACED.test(word) ? safe : `(?<![\\p{L}\\p{N}])${safe}(?![\\p{L}\\p{N}])`;
  };
  return list.length ? new RegExp(list.slice().sort((a, b) => b.length - a.length).map(one).join("|"), "giu") : null;
};
const marked = (text, pattern) => {
  const parts = [];
  let end = 0;
  for (const met of pattern ? text.matchAll(pattern) : []) {
    parts.push(text.slice(end, met.index), element("mark", met[0]));
    end = met.index + met[0].length;
  }
  return [...parts, text.slice(end)];
};
const LENGTH = 220;
// the part of a text with most of the words, from a word's start
const excerpt = (text, pattern) => {
  const places = pattern ? [...text.matchAll(pattern)].map((met) => met.index) : [];
  let best = 0, most = 0;
  places.forEach((first, i) => { const n = places.slice(i).findIndex((place) => place > first + LENGTH - 40), count = n < 0 ? places.length - i : n; if (count > most) [best, most] = [first, count]; });
  let start = Math.max(0, best - 40);
  if (start > 0) start = text.indexOf(" ", start) + 1 || start;
  const cutOff = text.slice(start, start + LENGTH);
  return marked(`${start > 0 ? "… " : ""}${cutOff}${start + LENGTH < text.length ? "…" : ""}`, pattern);
};
const markedOfCluster = (node) => ({ of: `distinctive words of ${nameOf(node)}`, words: relevant(words.get(node) || [], WEIGHT, 20).map((row) => row.word) });
const markedOfTopic = (number) => ({ of: `distinctive words of ${topicName(number)}`, words: relevant(topicWords.get(number) || [], WEIGHT, 20).map((row) => row.word) });

let reading = null, openedFrom = null;
const openDocument = async (number, marks, focus = true) => {
  const row = byDocument.get(number);
  if (!row) return;
  if ($("reader").hidden) openedFrom = document.activeElement;
  reading = number;
  $("reader").hidden = false;
  $("reader-title").textContent = row.title;
  const ofTopics = (topicsOf.get(number) || []).map((one) => `${percent(one.share)} ${topicName(one.topic)}`);
  $("reader-facts").textContent = [...factsOf(row), ...ofTopics, many(row.tokens, ofObservations ? "observation" : "word token")].join("\n");
  fill($("reader-predicted"), predictedOf(row));
  $("reader-text").textContent = hasTexts ? "…" : "";
  $("reader-marks").textContent = hasTexts ? "" : "This report has no texts; add them with mc2 describe --texts.";
  if (focus) $("reader-title").focus();
  if (!hasTexts) return;
  try {
    const text = await textOf(number);
    if (reading !== number) return;
    const pattern = patternOf(marks.words);
    fill($("reader-text"), marked(text || "(an empty text)", pattern));
    fill($("reader-marks"), [element("mark", "marked"), ` ${marks.of}`]);
  } catch (error) {
    if (reading === number) $("reader-text").textContent = error.message;
  }
};
// what is given of the contexts of the model, and what the document's clusters say of them
const placeOnPage = new Map(documents.map((row, i) => [row, i]));
const sayPredicted = (name, told, i) => {
  if (told.likeliest) return told.likeliest[i].map((one, rank) => `${told.names[one]} ${percent(told.share[i][rank])}`).join("; ");
  return `${sayEstimate(name, told.mean[i])} (90 %: ${sayEstimate(name, told.low[i])} to ${sayEstimate(name, told.high[i])})`;
};
const predictedOf = (row) => {
  const names = Object.keys(DESCRIPTION.predicted);
  if (!names.length) return [];
  const say = (name) => { const value = row[`in ${name}`]; return Array.isArray(value) ? value.slice(0, 6).join("; ") || "–" : sayNumber(name, value); };
  return [tableOf(["", "given", "predicted"], names.map((name) => [name, say(name), sayPredicted(name, DESCRIPTION.predicted[name], DESCRIPTION.predicted[name].of[placeOnPage.get(row)])])),
    element("p", "Predicted from all documents of its clusters, including this document.", { className: "soft small" })];
};
const closeReader = () => {
  if ($("reader").hidden) return;
  $("reader").hidden = true;
  reading = null;
  openedFrom?.focus?.();
};
$("reader-close").onclick = closeReader;
addEventListener("keydown", (event) => { if (event.key === "Escape") closeReader(); });
// a list of typical documents with what of their texts is there, or comes
const listDocuments = (id, rows, say, marks) => {
  const list = $(id), pattern = patternOf(marks.words);
  list.dataset.of = marks.of;
  fill(list, rows.map((one) => {
    const entry = element("li"), button = element("button", undefined, { type: "button", onclick: () => openDocument(one.document, marks) });
    button.append(element("span", byDocument.get(one.document)?.title ?? `document ${one.document}`), element("span", say(one), { className: "number" }));
    entry.append(button);
    if (hasTexts) {
      const text = element("span", "", { className: "excerpt" });
      entry.append(text);
      textOf(one.document).then((whole) => { if (whole && list.dataset.of === marks.of) fill(text, excerpt(whole, pattern)); }, (error) => { text.textContent = error.message; });
    }
    return entry;
  }));
};
