"use strict";
document.getElementById("save").onclick = () => {
  const parts = [...document.querySelectorAll("fieldset")];
  const rows = parts.map((one, i) => [document.body.querySelector("form").dataset.sheet, i + 1, one.querySelector(":checked")?.value ?? ""]);
  const open = rows.filter(row => row[2] === "").length;
  document.getElementById("left").textContent = open ? `${open} questions have no answer.` : "";
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(["sheet,question,answer\n", ...rows.map(row => `${row.join(",")}\n`)], { type: "text/csv" }));
  link.download = "answers.csv";
  link.click();
};
