// A formula does not break. Where it is wider than the page it becomes smaller, but stays legible;
// where that does not do, it scrolls.
const SMALLEST = 0.68;
function fitFormulas() {
  for (const block of document.querySelectorAll("article div.math")) {
    const formula = block.firstElementChild;
    formula.style.fontSize = "";
    const share = block.clientWidth / block.scrollWidth;
    if (share < 1) formula.style.fontSize = `${1.08 * Math.max(SMALLEST, share - 0.02)}em`;
  }
  for (const formula of document.querySelectorAll("article span.math")) {
    formula.classList.remove("wide");
    const around = formula.closest("p, li, dd, h1, h2, h3, h4, figcaption");
    if (around && !formula.closest("table") && formula.getBoundingClientRect().width > around.clientWidth) {
      formula.classList.add("wide");
    }
  }
}
window.addEventListener("load", () => document.fonts.ready.then(fitFormulas));
window.addEventListener("resize", fitFormulas);
