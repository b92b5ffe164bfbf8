// The search: the book first, then what stands beside it, then the reference. It looks through
// SEARCHED, which finding.py writes: [kind, address, title, page, other names, text].
const KINDS = ["The book", "Notebooks, exercises, guides", "Reference"];
const SHOWN = 8; // of a kind, before one asks for more
const SAME = [
  ["elbo", "evidence lower bound", "free energy"],
  ["bbb", "bayes by backprop"],
  ["nll", "negative log likelihood"],
  ["stdev", "standard deviation"],
];

// British or American, plural or not, with an accent or without: the same word.
function plain(text) {
  return text.toLowerCase().normalize("NFKD").replace(/[\u0300-\u036f]/g, "")
    .replace(/[^a-z0-9_\u03b1-\u03c9]+/g, " ")
    .replace(/parametri[sz]/g, "parameteriz")
    .replace(/([a-z]{3})is(e|ed|es|er|ers|ing|ation|ations)\b/g, "$1iz$2")
    .replace(/iz(e|ed|es|er|ers|ing|ation|ations)\b/g, "iz")
    .replace(/ou(r|red|ring)\b/g, "o$1").replace(/ll(ed|ing)\b/g, "l$1")
    .replace(/([a-z]{3})s\b/g, "$1")
    .replace(/\b(a|an|and|for|how|in|is|of|the|to|what) /g, "").trim();
}

// What is looked for: the query, and the query with another name for what it names.
function queries(asked) {
  const all = [asked];
  for (const names of SAME.map(group => group.map(plain))) {
    for (const name of names.filter(name => ` ${asked} `.includes(` ${name} `))) {
      all.push(...names.filter(other => other !== name).map(other => asked.replace(name, other)));
    }
  }
  return all;
}

function count(words, text) {
  let found = 0;
  for (let at = text.indexOf(words); at >= 0 && found < 9; at = text.indexOf(words, at + 1)) found++;
  return found;
}

// How well a part answers a query; 0 if a word of it is nowhere.
function score(part, query) {
  const [title, page, names, text] = part.plain;
  let sum = 0;
  for (const word of query.split(" ")) {
    const start = ` ${word}`;
    const points = 12 * (count(`${start} `, title) > 0) + 6 * (count(start, title) > 0)
      + 8 * (count(start, names) > 0) + 2 * (count(start, page) > 0)
      + Math.log2(1 + count(start, text));
    if (!points) return 0;
    sum += points;
  }
  const phrase = query.includes(" ") ? ` ${query}` : ` ${query} `;
  return sum + 60 * part[4].split(", ").some(name => plain(name) === query)
    + 30 * (count(phrase, title) > 0) + 4 * (query.includes(" ") && count(phrase, text) > 0);
}

function find(asked) {
  const all = queries(plain(asked));
  const found = SEARCHED.map(part => {
    part.plain ??= part.slice(2).map(text => ` ${plain(text)} `);
    return [Math.max(...all.map((query, at) => score(part, query) * (at ? 0.8 : 1))), part];
  });
  return found.filter(([points]) => points > 0).sort((a, b) => b[0] - a[0]).map(([, part]) => part);
}

// A text with the words of a query in it marked, around the first of them.
function excerpt(text, asked) {
  const stems = queries(plain(asked)).flatMap(query => query.split(" "))
    .map(word => word.slice(0, Math.max(4, word.length - 3)).replace(/\W/g, "."));
  const like = new RegExp(`(?<![a-z])(?:${stems.join("|")})[\\w-]*`, "gi");
  const at = Math.max(0, text.search(like));
  const first = at < 60 ? 0 : text.indexOf(" ", at - 60) + 1;
  const cut = text.slice(first, first + 200).replace(text.length > first + 200 ? / \S*$/ : "", "");
  const shown = document.createElement("p");
  shown.append(first ? "… " : "");
  let last = 0;
  for (const match of cut.matchAll(like)) {
    const mark = document.createElement("mark");
    mark.textContent = match[0];
    shown.append(cut.slice(last, match.index), mark);
    last = match.index + match[0].length;
  }
  shown.append(cut.slice(last) + (first + cut.length < text.length ? " …" : ""));
  return shown;
}

function entry([, address, title, page, , text], asked) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = address;
  link.textContent = title;
  item.append(link, title === page ? "" : ` in ${page}`, excerpt(text, asked));
  return item;
}

function show(asked) {
  const found = asked.trim() ? find(asked) : [];
  document.querySelector("#found").textContent = asked.trim() ? `${found.length} found` : "";
  const results = document.querySelector("#results");
  results.replaceChildren();
  KINDS.forEach((name, kind) => {
    const parts = found.filter(part => part[0] === kind);
    if (!parts.length) return;
    const head = document.createElement("h2");
    head.textContent = name;
    const list = document.createElement("ol");
    list.append(...parts.slice(0, SHOWN).map(part => entry(part, asked)));
    results.append(head, list);
    if (parts.length > SHOWN) {
      const more = document.createElement("button");
      more.textContent = `${parts.length - SHOWN} more`;
      more.onclick = () => {
        list.append(...parts.slice(SHOWN).map(part => entry(part, asked)));
        more.remove();
      };
      results.append(more);
    }
  });
}

const field = document.querySelector("form.find input");
field.value = new URLSearchParams(location.search).get("q") ?? "";
field.addEventListener("input", () => show(field.value));
field.form.addEventListener("submit", event => {
  event.preventDefault();
  history.replaceState(null, "", `?q=${encodeURIComponent(field.value)}`);
  show(field.value);
});
show(field.value);
