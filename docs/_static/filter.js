// above each table of class "filtered": a search, a menu per column of few values, and the number of rows shown
addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table.filtered")) {
    const rows = [...table.tBodies[0].rows];
    const bar = document.createElement("div");
    bar.className = "filters";
    const search = document.createElement("input");
    search.type = "search";
    search.placeholder = "Filter rows";
    search.ariaLabel = "Filter rows";
    const count = document.createElement("span");
    count.role = "status";
    const menus = [];
    bar.append(search);
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const values = [...new Set(rows.map((row) => row.cells[column].textContent))].sort();
      if (values.length > 30) return;
      const menu = document.createElement("select");
      menu.ariaLabel = head.textContent;
      menu.add(new Option(`${head.textContent}: all`, ""));
      for (const value of values) menu.add(new Option(value || "(none)", `=${value}`));
      menus.push([column, menu]);
      bar.append(menu);
    });
    const update = () => {
      const words = search.value.toLowerCase().split(/\s+/);
      let shown = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        const isChosen = menus.every(([column, { value }]) => !value || value.slice(1) === row.cells[column].textContent);
        row.hidden = !(isChosen && words.every((word) => text.includes(word)));
        shown += !row.hidden;
      }
      count.textContent = `${shown} of ${rows.length} rows`;
    };
    bar.addEventListener("input", update);
    bar.append(count);
    table.parentElement.before(bar);
    update();
  }
});
