// What test_site.py asks a browser about a page.

// Call `done` when the page is loaded.
function ready(done) {
  const wait = () => setTimeout(done, 0);
  document.readyState === "complete" ? wait() : window.addEventListener("load", wait);
}

// What is to be seen, and what is wrong with it.
function look() {
  document.querySelectorAll("details").forEach(fold => { fold.open = true; });
  const plain = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode;
    if (!node.parentElement.closest("pre, code, script, style, math, .highlight, body > ol")) {
      plain.push(node.data);
    }
  }
  const links = [...document.querySelectorAll("article p a, article li a, article td a")];
  const colourless = links.filter(link => link.offsetParent && !link.matches(".headerlink")
    && !getComputedStyle(link).textDecorationLine.includes("underline"));
  const hits = [...document.querySelectorAll(".listing .hit")];
  const scrolls = element => /auto|scroll/.test(getComputedStyle(element).overflowX);
  const inside = element => {
    for (let around = element.parentElement; around; around = around.parentElement) {
      if (around.matches("article, body")) return false;
      if (scrolls(around)) return true;
    }
  };
  const right = [...document.querySelectorAll("article, article *")]
    .filter(element => element.checkVisibility() && !element.closest("svg, math, script, .piece > img"))
    .filter(element => !inside(element))
    .map(element => element.getBoundingClientRect().right);
  return {
    width: Math.max(document.documentElement.scrollWidth, ...right.map(Math.floor)),
    formulas: document.querySelectorAll(".math:not(:has(.math))").length,
    typeset: document.querySelectorAll("math").length,
    broken: document.querySelectorAll("merror, .math:empty").length,
    latex: plain.join(" ").match(/\\[a-zA-Z]{2,}|\\\(|\$\S/g),
    colourless: colourless.map(link => link.textContent),
    unmarked: hits.filter(hit => !getComputedStyle(hit, "::before").content.includes("▶")).length,
    loaded: performance.getEntriesByType("resource").map(entry => entry.name)
      .filter(name => /^https?:/.test(name)),
  };
}

// What is wider than the place it has on the page of an equation.
function cut() {
  document.querySelectorAll("details").forEach(fold => { fold.open = true; });
  fitFormulas();
  return [...document.querySelectorAll(".column pre, .column div.math")]
    .filter(element => element.scrollWidth > element.clientWidth + 1)
    .map(element => `${element.scrollWidth} pixels in ${element.clientWidth}: ${element.textContent}`);
}

// How light the page and a formula are, from 0 to 1.
function light() {
  const of = (element, property) => {
    const [red, green, blue] = getComputedStyle(element)[property].match(/[\d.]+/g).map(Number);
    return (red + green + blue) / 765;
  };
  return {
    page: of(document.body, "backgroundColor"), formula: of(document.querySelector("math"), "color"),
  };
}

// What the search has found: address, kind, whether a word of its excerpt is marked.
function answers() {
  document.querySelectorAll("#results button").forEach(more => more.click());
  return [...document.querySelectorAll("#results ol")].flatMap((list, at) => {
    const kind = KINDS.indexOf(list.previousElementSibling.textContent);
    return [...list.children].map(item =>
      [item.querySelector("a").getAttribute("href"), kind, Boolean(item.querySelector("mark"))]);
  });
}

// Each picture without a ground that is to be seen, or its panels: file, left and right edge, pixels
// for each of the file's, whether something around it scrolls, whether it is a panel.
function figures() {
  const seen = [...document.querySelectorAll("article img.figure")].filter(image =>
    image.checkVisibility() && image.getBoundingClientRect().width > 1);
  return seen.map(image => {
    const piece = image.closest(".piece"), box = (piece ?? image).getBoundingClientRect();
    const around = image.closest("p, .cell_output") ?? image.parentElement;
    const width = Number(getComputedStyle(image).width.replace("px", ""));
    image.loading = "eager";
    return [image.src.split("/").at(-1), box.left, box.right, width / natural(image),
            around.scrollWidth > around.clientWidth + 32, Boolean(piece)];
  });
}

// The width of a file; that of a picture which loads when it comes into view is its first one's.
function natural(image) {
  const whole = image.closest(".panels")?.querySelector("img.whole") ?? image;
  return whole.naturalWidth;
}

// Where the two columns of an equation begin.
function columns() {
  return [...document.querySelectorAll('.column')].map(c => c.offsetTop);
}

// The fold of a notebook's hints.
function hints() {
  const fold = [...document.querySelectorAll("article details")].at(-1);
  const asked = fold.parentElement.querySelectorAll(":scope > ol > li");
  const hints = fold.querySelectorAll("ol > li");
  const seen = [...hints].filter(hint => hint.checkVisibility());
  const formulas = [...fold.querySelectorAll("math")];
  return {
    title: fold.querySelector("summary").textContent, asked: asked.length, hints: hints.length,
    seen: seen.length, raw: fold.textContent.match(/[$]/g),
    formulas: fold.querySelectorAll(".math").length,
    drawn: formulas.filter(formula => formula.getBoundingClientRect().width > 4).length,
  };
}

// Move each slider to its end: number of frames, of images, what was shown before and after.
function films() {
  return [...document.querySelectorAll("article input[type=range]")].map(slider => {
    const frames = [...slider.parentNode.querySelectorAll("img")];
    const shown = () => frames.flatMap((frame, at) => frame.checkVisibility() ? [at] : []);
    const first = shown();
    slider.value = slider.max;
    slider.dispatchEvent(new Event("input"));
    const images = frames.filter(frame => frame.complete && frame.naturalWidth && frame.alt);
    return [frames.length, images.length, first, shown()];
  });
}

// Title, width and height of every slide.
function slides() {
  return Reveal.getSlides().map(slide => {
    const at = Reveal.getIndices(slide);
    Reveal.slide(at.h, at.v);
    const now = Reveal.getCurrentSlide();
    return [now.querySelector('h1, h2, h3')?.textContent, now.scrollWidth, now.scrollHeight];
  });
}

// Name, width and height of every picture of the slides, as shown and as stored.
function pictures() {
  return Reveal.getSlides().flatMap(slide => {
    const at = Reveal.getIndices(slide);
    Reveal.slide(at.h, at.v);
    return [...slide.querySelectorAll("img")].map(image =>
      [image.src, image.width, image.height, image.naturalWidth, image.naturalHeight]);
  });
}
