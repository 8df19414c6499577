"use strict";
const buttons = document.querySelectorAll("button[data-verdict]");
for (const button of buttons)
  button.onclick = () => {
    const pressed = button.getAttribute("aria-pressed") !== "true";
    for (const one of buttons) one.setAttribute("aria-pressed", String(one === button && pressed));
    for (const row of document.querySelectorAll("#claims tbody tr"))
      row.hidden = pressed && row.dataset.verdict !== button.dataset.verdict;
  };
document.body.dataset.ready = "true";
