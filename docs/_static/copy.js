// a button at each block of code, which copies it without the prompts of Python
addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div.highlight > pre")) {
    const button = document.createElement("button");
    button.className = "copy";
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      const lines = block.innerText.trimEnd().split("\n");
      const code = lines.filter((line) => /^(>>>|\.\.\.)( |$)/.test(line));
      const text = (code.length ? code.map((line) => line.slice(4)) : lines).join("\n");
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    block.parentElement.append(button);
  }
});
