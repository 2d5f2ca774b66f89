// The SQL editor: completion of tables, columns, keys and functions, and marks under what is wrong.
"use strict";
(() => {
  const editor = document.querySelector(".editor");
  if (!editor) return;
  const area = editor.querySelector("textarea");
  const mirror = editor.querySelector(".mirror");
  const words = JSON.parse(editor.dataset.words);
  const list = document.createElement("ul");
  list.className = "completions";
  list.id = "completions";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Completions");
  list.hidden = true;
  editor.append(list);
  area.setAttribute("aria-autocomplete", "list");
  area.setAttribute("aria-controls", "completions");
  let found = [];
  let at = -1;
  let wrong = null;

  // The mirror has the same text and wraps it alike: it draws the mark, and tells where a character is.
  function mirrored(start, end, tag) {
    mirror.textContent = "";
    const marked = document.createElement(tag);
    marked.textContent = area.value.slice(start, end) || "\u200b";
    mirror.append(area.value.slice(0, start), marked, area.value.slice(end) + "\n");
    mirror.scrollTop = area.scrollTop;
    return marked;
  }

  function mark() {
    if (wrong) mirrored(wrong[0], Math.max(wrong[1], wrong[0] + 1), "mark");
    else mirror.textContent = "";
  }

  function setWrong(range) {
    wrong = range;
    area.setAttribute("aria-invalid", String(Boolean(range)));
    mark();
  }

  // The word before the caret: a name, or a text that has begun with a quote.
  function word() {
    const before = area.value.slice(0, area.selectionStart);
    const match = /('[^'\n]*|"[^"\n]*|[\p{L}_][\p{L}\p{N}_]*)$/u.exec(before);
    if (!match) return null;
    // An odd number of quotes before it: it is inside a text, or it is the quote that ends one.
    const earlier = before.slice(0, match.index);
    if (earlier.split("'").length % 2 === 0 || earlier.split('"').length % 2 === 0) return null;
    return { text: match[0], start: match.index };
  }

  function close() {
    list.hidden = true;
    found = [];
    at = -1;
    area.removeAttribute("aria-activedescendant");
  }

  function choose(index) {
    at = index;
    [...list.children].forEach((item, i) => {
      item.setAttribute("aria-selected", String(i === at));
      if (i === at) item.scrollIntoView({ block: "nearest" });
    });
    if (at < 0) area.removeAttribute("aria-activedescendant");
    else area.setAttribute("aria-activedescendant", `completion-${at}`);
  }

  function open() {
    const current = word();
    if (!current || area.selectionStart !== area.selectionEnd) return close();
    const sought = current.text.toLowerCase();
    const plain = sought.replace(/^['"]/, "");
    found = words.filter(([text]) => {
      const lower = text.toLowerCase();
      return lower !== sought && (lower.startsWith(sought) || (plain && lower.replace(/^['"]/, "").startsWith(plain) && (sought[0] !== "'" || lower[0] === "'")));
    }).slice(0, 12);
    if (!found.length) return close();
    list.textContent = "";
    found.forEach(([text, what], i) => {
      const item = document.createElement("li");
      item.id = `completion-${i}`;
      item.setAttribute("role", "option");
      const code = document.createElement("code");
      code.textContent = text;
      const kind = document.createElement("span");
      kind.textContent = what;
      item.append(code, kind);
      item.addEventListener("mousedown", (event) => { event.preventDefault(); take(i); });
      list.append(item);
    });
    const spot = mirrored(current.start, current.start, "span");
    const left = Math.min(spot.offsetLeft, editor.clientWidth - 250);
    const top = spot.offsetTop - area.scrollTop + 28;
    mark();
    list.hidden = false;
    list.style.left = `${Math.max(0, left)}px`;  // set by script through the object model, which the policy allows
    list.style.top = `${top}px`;
    choose(0);
  }

  function write(text, start, end) {
    area.focus();
    area.setSelectionRange(start, end);
    if (!document.execCommand("insertText", false, text)) area.setRangeText(text, start, end, "end");
    area.dispatchEvent(new Event("input", { bubbles: true }));
    close();
  }

  function take(index) {
    const current = word();
    if (!current) return close();
    const text = found[index][0];
    let end = area.selectionStart;
    if (text.endsWith("'") && area.value[end] === "'") end += 1;
    write(text, current.start, end);
  }

  area.addEventListener("input", (event) => {
    setWrong(null);
    if (event.isTrusted && event.inputType !== "insertFromPaste") open();
  });
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      area.form.requestSubmit(area.form.querySelector('[value="ask"]'));
      return;
    }
    if (list.hidden) return;
    if (event.key === "ArrowDown") { event.preventDefault(); choose((at + 1) % found.length); }
    else if (event.key === "ArrowUp") { event.preventDefault(); choose((at + found.length - 1) % found.length); }
    else if ((event.key === "Enter" || event.key === "Tab") && at >= 0) { event.preventDefault(); take(at); }
    else if (event.key === "Escape") { event.preventDefault(); close(); }
    else if (["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) close();
  });
  area.addEventListener("blur", close);
  area.addEventListener("scroll", () => { mirror.scrollTop = area.scrollTop; close(); });

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-insert]");
    if (!button) return;
    const place = area.selectionStart;
    const gap = place && !/[\s(,]$/.test(area.value.slice(0, place)) ? " " : "";
    write(gap + button.dataset.insert, place, area.selectionEnd);
  });

  if (area.dataset.at) setWrong(area.dataset.at.split(" ").map(Number));
  editor.mark = setWrong;
})();
