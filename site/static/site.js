// A formula in a line of text does not break: where it is wider than its paragraph, it scrolls.
function markWide() {
  for (const formula of document.querySelectorAll("article span.math")) {
    formula.classList.remove("wide");
    const around = formula.closest("p, li, dd, h1, h2, h3, h4, figcaption");
    if (around && !formula.closest("table") && formula.getBoundingClientRect().width > around.clientWidth) {
      formula.classList.add("wide");
    }
  }
}
window.addEventListener("load", markWide);
window.addEventListener("resize", markWide);
