// What a question would cost, while it is written. Nothing is spent here: only the button asks.
"use strict";
(() => {
  const form = document.getElementById("question");
  if (!form) return;
  const price = document.getElementById("price");
  const slider = document.getElementById("slider");
  const place = document.getElementById("explained");
  const problem = document.getElementById("problem");
  const made = document.getElementById("made-sql");
  const editor = document.querySelector(".editor");
  const steps = slider.dataset.steps.split(" ");
  let timer = 0;
  let running = null;

  async function preview() {
    if (running) running.abort();
    if (editor && !form.elements.sql.value.trim()) {
      // The price of a question that is gone must not stay beside an empty one.
      running = null;
      place.classList.remove("busy");
      place.textContent = "The cost and the expected error appear here.";
      problem.textContent = "";
      return;
    }
    running = new AbortController();
    const mine = running;
    place.classList.add("busy");
    try {
      const response = await fetch(form.dataset.preview, {
        method: "POST",
        body: new URLSearchParams(new FormData(form)),
        headers: { "X-CSRF-Token": form.elements.csrf.value, Accept: "application/json" },
        signal: mine.signal,
        credentials: "same-origin",
      });
      if (response.status === 401) { location.reload(); return; }
      if (!response.ok) return;
      const found = await response.json();
      if (mine !== running) return;
      // Both are pieces of HTML that the server has written from its own templates, every text escaped.
      place.innerHTML = found.explained;
      problem.innerHTML = found.problem;
      if (made) made.textContent = found.sql;
      if (editor && editor.mark) editor.mark(found.at);
    } catch (error) {
      if (error.name !== "AbortError") place.textContent = "The server can’t be reached.";
    } finally {
      if (mine === running) place.classList.remove("busy");
    }
  }

  function soon(wait) {
    clearTimeout(timer);
    timer = setTimeout(preview, wait);
  }

  // A number of rows or of people is of no column; anything else is of the one that is shown.
  const measure = document.getElementById("f-measure");
  const column = document.getElementById("f-column");
  function choose() {
    column.disabled = ["count", "people"].includes(measure.value);
    if (!column.disabled && !column.value && column.options.length > 1) column.selectedIndex = 1;
  }
  if (measure) { measure.addEventListener("input", choose); window.addEventListener("pageshow", choose); choose(); }

  slider.addEventListener("input", () => {
    price.value = steps[Number(slider.value)];
    slider.setAttribute("aria-valuetext", price.value);
    soon(120);
  });
  price.addEventListener("input", () => {
    const value = Number(price.value);
    let near = 0;
    steps.forEach((step, i) => { if (Number(step) <= value) near = i; });
    slider.value = String(near);
  });
  form.addEventListener("input", (event) => { if (event.target !== slider) soon(400); });
  form.addEventListener("change", (event) => {
    // Another table has other columns: the server fills the form anew.
    if (event.target.name === "table") {
      const fill = document.createElement("input");
      fill.type = "hidden"; fill.name = "act"; fill.value = "fill";
      form.append(fill);
      form.submit();
    }
  });
  form.addEventListener("submit", (event) => {
    // A second click must not look like a second question; the request id makes it the same one anyway.
    const button = event.submitter;
    if (button && button.value === "ask") setTimeout(() => { button.disabled = true; }, 0);
  });
  window.addEventListener("pageshow", () => {
    form.querySelectorAll("button").forEach((button) => { button.disabled = false; });
  });

  // The other way to ask keeps what was asked so far, as far as the form made SQL.
  const toSql = document.querySelector('[data-mode="sql"]');
  if (made && toSql) toSql.addEventListener("click", () => { toSql.search = "?" + new URLSearchParams({ sql: made.textContent, price: price.value }); });
  if (editor && form.elements.sql.value.trim() && !place.querySelector("dl")) soon(0);
  if (!editor && !place.querySelector("dl")) soon(0);
})();
