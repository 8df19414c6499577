// The scores of Sphinx's search, with pages that guide ahead of those that record: notes and the list of changes.
var Scorer = {
  score: ([page, , , , score]) => (/^(notes\/|development\/changes)/.test(page) ? score - 4 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
