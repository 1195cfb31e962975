"use strict";
// Sorts and filters the list of kernels, and opens what a link leads to; without it all is there to be read.
(() => {
  const list = document.getElementById("list"), body = list.tBodies[0], rows = [...body.rows];
  const filter = document.getElementById("filter"), shown = document.getElementById("shown");
  filter.closest("p").hidden = false;
  const narrow = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      count += !row.hidden;
    }
    shown.textContent = `${count} of ${rows.length}`;
  };
  filter.addEventListener("input", narrow);
  narrow();
  [...list.tHead.rows[0].cells].forEach((heading, column) => {
    heading.className = "sorts";
    heading.tabIndex = 0;
    heading.addEventListener("keydown", (event) => event.key === "Enter" && heading.click());
    heading.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      for (const other of list.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => row.cells[column].textContent;
      rows.sort((a, b) => key(a).localeCompare(key(b), "en", { numeric: true }) * (down ? -1 : 1));
      body.append(...rows);
    });
  });
  const open = () => {
    const place = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let each = place; each; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
    if (place) place.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();
})();
