// Small helps for every page: whether script runs, and buttons that copy.
"use strict";
document.documentElement.classList.add("js");

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const from = document.querySelector(button.dataset.copy);
  const said = document.getElementById("copied");
  try {
    await navigator.clipboard.writeText(from.textContent);
    if (said) said.textContent = "Copied.";
  } catch {
    if (said) said.textContent = "The browser does not allow copying. Select the text instead.";
  }
});
