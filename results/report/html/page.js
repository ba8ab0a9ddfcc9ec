// Without scripts the page is whole; they filter the table of cases, and open what a link points to
// and what a printed page must show.
"use strict";
(() => {
  const reveal = () => {
    let element = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const target = element;
    for (; element; element = element.parentElement) {
      if (element.tagName === "DETAILS") element.open = true;
    }
    if (target) target.scrollIntoView();
  };
  window.addEventListener("hashchange", reveal);
  if (location.hash) reveal();
  window.addEventListener("beforeprint", () => {
    for (const trace of document.querySelectorAll("#failures ~ .trace")) trace.open = true;
  });
  const filter = document.getElementById("filter");
  if (!filter) return;
  const groups = [...document.querySelectorAll("details.cases")].map((details) => ({
    details, rows: [...details.querySelectorAll("tbody tr")].map(
      (row) => ({ row, text: row.textContent.toLowerCase() })) }));
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { details, rows } of groups) {
      let here = 0;
      for (const { row, text } of rows) {
        row.hidden = !words.every((word) => text.includes(word));
        here += row.hidden ? 0 : 1;
      }
      details.hidden = here === 0;
      if (words.length && here && here <= 500) details.open = true;
      shown += here;
    }
    document.getElementById("shown").textContent = words.length ? `${shown} cases` : "";
  });
})();
