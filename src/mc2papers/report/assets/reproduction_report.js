"use strict";
for (const list of document.querySelectorAll(".claim-list")) {
  const buttons = list.querySelectorAll("button[data-verdict]");
  for (const button of buttons)
    button.onclick = () => {
      const pressed = button.getAttribute("aria-pressed") !== "true";
      for (const one of buttons) one.setAttribute("aria-pressed", String(one === button && pressed));
      for (const row of list.querySelectorAll("tbody tr"))
        row.hidden = pressed && row.dataset.verdict !== button.dataset.verdict;
      list.querySelector("details").open = true;
    };
}
// a link to a table or figure opens it
const opened = () => {
  const aim = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (aim?.matches("details")) {
    aim.open = true;
    aim.scrollIntoView();
  }
};
addEventListener("hashchange", opened);
opened();
document.body.dataset.ready = "true";
