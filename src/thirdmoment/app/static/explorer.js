// The page: asks for plain data, builds elements from it. Text enters only as text nodes.

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const main = byId("main");
const WORDS = 20;
const COLOURS = 8;
const RELEVANCE = 0.6;
const ALIKE = 3; // shares of a word in two topics that differ by less are those of both
let overview = data.overview;
let relevance = RELEVANCE;

// elements ------------------------------------------------------------------------------------

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(9).filter((one) => one !== null && one !== undefined && one !== ""));
  return node;
}

const h = (tag, attributes, ...children) =>
  fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

function percent(share) {
  if (share === null || share === undefined) return "–";
  const value = 100 * share;
  if (value > 0 && value < 0.01) return "<0.01%";
  return `${value.toFixed(value < 1 ? 2 : value < 10 ? 1 : 0)}%`;
}
const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
const label = (j) => overview.topics[j]?.label ?? `topic ${j}`;
const quoted = (word) => (/^[\p{L}\p{N}][^\s"]*[\p{L}\p{N}]$|^[\p{L}\p{N}]$/u.test(word) ? word : `"${word}"`);

// answers -------------------------------------------------------------------------------------

class Trouble extends Error {
  constructor(text, near = []) {
    super(text);
    this.near = near;
  }
}

const kept = new Map(); // the last answers, for the way back

async function get(path, given = {}) {
  const pairs = Object.entries(given);
  const plain = pairs.length ? `${path}?${pairs.map((pair) => pair.join("=")).join("&")}` : path;
  if (!data.live) {
    const forms = [plain, plain.toLowerCase()];
    if (given.q) forms.push(...forms.map((one) => one.replace(/=(.*)$/, '="$1"')));
    const found = forms.map((one) => data.answers[one]).find(Boolean);
    if (found) return found;
    throw new Trouble(missing(path), path === "search" ? await near(given.q || "") : []);
  }
  if (kept.has(plain)) return kept.get(plain);
  const query = pairs.length ? `?${new URLSearchParams(given)}` : "";
  const found = await ask(`api/${path}${query}`);
  if (found.error) throw new Trouble(found.error, found.near);
  kept.set(plain, found);
  if (kept.size > 50) kept.delete(kept.keys().next().value);
  return found;
}

async function ask(address, options) {
  let reply;
  try {
    reply = await fetch(address, options);
  } catch {
    throw new Trouble("The server does not answer. Is it still running?");
  }
  const found = await reply.json().catch(() => ({ error: `The server said ${reply.status}.` }));
  const version = reply.headers.get("X-Version");
  if (reply.status === 409 || (version !== null && Number(version) !== overview.version)) await renew();
  if (!reply.ok) throw new Trouble(found.error, found.near);
  return found;
}

// the topics as they are, after another window has changed them
async function renew() {
  overview = await (await fetch("api/overview")).json();
  kept.clear();
}

function missing(path) {
  if (path === "search") {
    const known = data.answers.words.words.length;
    return `This file knows the topics of ${count(known, "single word")}; the live page answers any question.`;
  }
  return "This file does not hold that page; the live page does.";
}

async function near(text) {
  const words = (await get("words")).words;
  const typed = text.replaceAll('"', "").trim().toLowerCase();
  return words.filter((word) => word.startsWith(typed.slice(0, 3))).slice(0, 5);
}

async function change(kind, body) {
  if (!data.live) throw new Trouble("This is a copy in a file: only names can be changed in it.");
  overview = await ask(`api/${kind}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Token": data.token },
    body: JSON.stringify({ ...body, version: overview.version }),
  });
  kept.clear();
}

async function rename(j, name) {
  if (data.live) return change("rename", { topic: j, name });
  if (!name.trim()) throw new Trouble("A name has at least one letter.");
  overview.topics[j].label = name.trim();
}

// addresses -----------------------------------------------------------------------------------

let address = location.hash;

function link(path, given = {}) {
  const all = new URLSearchParams(given);
  if (relevance !== RELEVANCE) all.set("r", relevance);
  return `#/${path}${all.size ? `?${all}` : ""}`;
}

const toTopic = (j) => link(`topic/${j}`);
const toSearch = (q) => link("search", { q });
const toDocuments = (rows) => link("search", { rows: rows.join(",") });

function go(to, replace = false) {
  address = to;
  try {
    history[replace ? "replaceState" : "pushState"](null, "", to);
  } catch {
    // inside a notebook a frame has no address of its own
  }
}

function parse() {
  const [path, query] = address.replace(/^#\/?/, "").split("?");
  return { parts: path.split("/"), given: new URLSearchParams(query || "") };
}

let turn = 0;
let shown; // the version of the topics on the page

async function show(focus = true) {
  const mine = ++turn;
  const { parts, given } = parse();
  const r = Number(given.get("r") ?? RELEVANCE);
  relevance = r >= 0 && r <= 1 ? Math.round(10 * r) / 10 : RELEVANCE;
  const kind = Object.hasOwn(views, parts[0]) ? parts[0] : "topics";
  main.setAttribute("aria-busy", "true");
  const slow = setTimeout(() => main.classList.add("slow"), 200);
  let page, version;
  do {
    version = overview.version;
    try {
      page = await views[kind](given, ...parts.slice(1));
    } catch (error) {
      page = troubled(error);
    }
  } while (version !== overview.version);
  clearTimeout(slow);
  if (mine !== turn) return;
  shown = version;
  head(kind, given);
  main.replaceChildren(...page.body.flat(9).filter(Boolean));
  main.removeAttribute("aria-busy");
  main.classList.remove("slow");
  document.title = `${page.title} · ${overview.title}`;
  if (focus) {
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  say(`${page.title}.`);
}

function troubled(error) {
  if (!(error instanceof Trouble)) console.error(error);
  const text = error instanceof Trouble ? error.message : "Something went wrong in this page.";
  const offered = (error.near || []).map((word) =>
    h("li", {}, h("a", { class: "chip", href: toSearch(quoted(word)) }, word)));
  return {
    title: "Not found",
    body: [h("h1", {}, "Nothing to show"), h("p", { class: "care note", role: "alert" }, text),
      offered.length ? [h("p", {}, "Did you mean:"), h("ul", { class: "chips" }, offered)] : null],
  };
}

function say(text) {
  byId("said").textContent = text;
}

// runs a change, then shows the page anew; what fails is said where the user is
async function act(work, told) {
  try {
    await work();
    await show(false);
    say(told);
  } catch (error) {
    const text = error instanceof Trouble ? error.message : "Something went wrong in this page.";
    if (data.live && shown !== overview.version) await show(false);
    say(text);
    byId("failed")?.remove();
    main.prepend(h("p", { id: "failed", class: "care note", role: "alert" }, text));
  }
}

// downloads -----------------------------------------------------------------------------------

function save(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// a text cell that a spreadsheet would take for a formula gets an apostrophe before it
function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  let text = String(value);
  if (/^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csv(columns, rows) {
  return [columns, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

function json(columns, rows) {
  const objects = rows.map((row) => Object.fromEntries(columns.map((name, i) => [name, row[i]])));
  return JSON.stringify(objects, null, 1);
}

const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size",
  "font-family", "text-anchor"];

function svgText(picture) {
  const away = h("div", { class: "away" });
  const copy = picture.cloneNode(true);
  away.append(copy);
  document.body.append(away);
  for (const node of [copy, ...copy.querySelectorAll("*")]) {
    const style = getComputedStyle(node);
    for (const name of STYLES) node.setAttribute(name, style.getPropertyValue(name));
  }
  const paper = getComputedStyle(document.body).backgroundColor;
  copy.prepend(s("rect", { width: "100%", height: "100%", fill: paper }));
  away.remove();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new XMLSerializer().serializeToString(copy);
}

// table(): { name, columns, rows }, as it is when a button is pressed
function downloads(what, table, draw = null) {
  const file = (kind) =>
    `${overview.title}-${table().name}`.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 80) + `.${kind}`;
  const button = (kind, make) =>
    h("button", { type: "button", class: "quiet", "aria-label": `${kind.toUpperCase()} of ${what}`, onclick: make },
      kind.toUpperCase());
  return h("span", { class: "downloads" },
    button("csv", () => save(file("csv"), "text/csv", csv(table().columns, table().rows))),
    button("json", () => save(file("json"), "application/json", json(table().columns, table().rows))),
    draw ? button("svg", () => save(file("svg"), "image/svg+xml", svgText(draw()))) : null);
}

// charts --------------------------------------------------------------------------------------

const bar = (share, more = null) =>
  s("svg", { class: "bar", viewBox: "0 0 100 12", preserveAspectRatio: "none", "aria-hidden": "true" },
    share ? s("rect", { class: "filled", width: Math.max(0.5, 100 * share), height: 12, rx: 1 }) : null, more);

function ranked(words, r, n = WORDS) {
  const score = ([, p, mean]) => r * Math.log(p) + (1 - r) * Math.log(p / mean);
  return [...words].sort((a, b) => score(b) - score(a)).slice(0, n);
}

// the words of a topic: a table whose bars follow the slider
function wordBars(words, name, refine = null) {
  const body = h("tbody");
  const rows = () => ranked(words, relevance);
  const table = () => ({
    name,
    columns: ["word", "probability", "corpus", "lift"],
    rows: rows().map(([word, p, mean]) => [word, p, mean, Number((p / mean).toPrecision(6))]),
  });
  const draw = () => {
    const shown = rows();
    const most = Math.max(...shown.map(([, p]) => p));
    body.replaceChildren(...shown.map(([word, p, mean]) => {
      const corpus = s("rect", { class: "tick", x: Math.min(99, 100 * mean / most), width: 1, height: 12 });
      return h("tr", {},
        h("th", { scope: "row" }, h("a", { href: toSearch(quoted(word)), dir: "auto" }, word)),
        h("td", { class: "wide" }, bar(p / most, corpus)),
        h("td", { class: "number" }, percent(p)),
        h("td", { class: "number" }, `${(p / mean).toPrecision(2) * 1}×`),
        refine ? h("td", { class: "tools" }, refine(word)) : null);
    }));
  };
  const slider = h("input", {
    type: "range", id: "relevance", min: 0, max: 1, step: 0.1, value: relevance,
    "aria-describedby": "ends",
    oninput: (event) => {
      relevance = Number(event.target.value);
      const { parts, given } = parse();
      given.delete("r");
      go(link(parts.join("/"), given), true);
      draw();
    },
  });
  draw();
  return h("section", { "aria-label": "Words" },
    h("div", { class: "bar-head" }, h("h2", {}, "Words"), downloads("the words", table, () => barPicture(rows(), name))),
    h("div", { class: "slider" }, h("label", { for: "relevance" }, "Rank words"),
      h("span", { "aria-hidden": "true" }, "telling"), slider, h("span", { "aria-hidden": "true" }, "frequent"),
      h("span", { id: "ends", class: "unseen" }, "0: by how much more frequent than elsewhere; 1: by how frequent")),
    h("table", { class: "words" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Word"),
        h("td", { class: "hint" }, "line: in all documents"),
        h("th", { scope: "col", class: "number" }, "of topic"), h("th", { scope: "col", class: "number" }, "lift"),
        refine ? h("th", { scope: "col" }, h("span", { class: "unseen" }, "narrow the search")) : null)),
      body));
}

function barPicture(rows, title) {
  const most = Math.max(...rows.map(([, p]) => p));
  return s("svg", { viewBox: `0 0 480 ${34 + 18 * rows.length}`, width: 480 },
    s("text", { class: "title", x: 8, y: 18 }, title),
    rows.map(([word, p, mean], i) => [
      s("text", { class: "end", x: 150, y: 41 + 18 * i }, word),
      s("rect", { class: "filled", x: 156, y: 30 + 18 * i, width: (260 * p) / most, height: 13 }),
      s("rect", { class: "tick", x: 156 + Math.min(260, (260 * mean) / most), y: 30 + 18 * i, width: 2, height: 13 }),
      s("text", { x: 160 + (260 * p) / most, y: 41 + 18 * i }, percent(p)),
    ]));
}

// share by group (bars) or over time (a line), each with its error and a table
const ROUGH = "Rough: good to compare, not to read off sizes. Those of the topics of the model are better.";

function shares(rows, kind, title, name, note = null) {
  if (!rows.length) return null;
  const table = () => ({ name: `${name} ${kind}`, columns: [kind, "share", "standard_error", "documents"], rows });
  const picture = kind === "group" ? groupPicture(rows) : timePicture(rows);
  fill(picture, { role: "img", "aria-label": `${title}; the table has the numbers` }, []);
  return h("section", { class: "figure", "aria-label": title },
    h("div", { class: "bar-head" }, h("h2", {}, title), downloads(title.toLowerCase(), table, () => picture)),
    note ? h("p", { class: "meta" }, note) : null,
    picture,
    h("details", {}, h("summary", {}, "Table"),
      h("table", {}, h("thead", {}, h("tr", {}, [kind, "share", "std. error", "documents"].map((text) => h("th", { scope: "col" }, text)))),
        h("tbody", {}, rows.map(([key, share, error, n]) =>
          h("tr", {}, h("th", { scope: "row", dir: "auto" }, key), h("td", { class: "number" }, percent(share)),
            h("td", { class: "number" }, percent(error)), h("td", { class: "number" }, n.toLocaleString("en"))))))));
}

const byGroup = (rows) => (overview.groups > rows.length ? `Share by group, the ${rows.length} largest of ${overview.groups}` : "Share by group");

function groupPicture(rows) {
  const sorted = [...rows].sort((a, b) => b[1] - a[1]);
  const most = Math.max(...sorted.map(([, share, error]) => share + 2 * (error || 0)), 1e-9);
  const x = (share) => 150 + (260 * share) / most;
  return s("svg", { class: "chart", viewBox: `0 0 480 ${8 + 20 * sorted.length}` },
    sorted.map(([key, share, error], i) => {
      const y = 6 + 20 * i;
      return [s("text", { class: "end", x: 144, y: y + 11 }, key.length > 22 ? `${key.slice(0, 21)}…` : key),
        s("rect", { class: "filled", x: 150, y, width: Math.max(0, x(share) - 150), height: 14, rx: 2 }),
        error ? s("line", { class: "whisker", x1: x(Math.max(0, share - 2 * error)), x2: x(share + 2 * error), y1: y + 7, y2: y + 7 }) : null,
        s("text", { x: x(share + 2 * (error || 0)) + 5, y: y + 11 }, percent(share))];
    }));
}

function timePicture(rows) {
  const top = Math.max(...rows.map(([, share, error]) => share + 2 * (error || 0)), 1e-9);
  const days = rows.map(([key]) => Date.parse(key));
  const at0 = days.some(Number.isNaN) ? rows.map((_, i) => i) : days;
  const [first, last] = [at0[0], at0.at(-1)];
  const x = (i) => 44 + (420 * (at0[i] - first)) / Math.max(1, last - first);
  const y = (share) => 150 - (130 * Math.max(0, share)) / top;
  const at = (i, share) => `${x(i).toFixed(1)},${y(share).toFixed(1)}`;
  const high = rows.map(([, share, error], i) => at(i, share + 2 * (error || 0)));
  const low = rows.map(([, share, error], i) => at(i, share - 2 * (error || 0))).reverse();
  let free = -Infinity; // where the next label has room
  const labelled = rows.map((_, i) => x(i) >= free && ((free = x(i) + 60), true));
  return s("svg", { class: "chart", viewBox: "0 0 480 176" },
    [0, 0.5, 1].map((part) => [
      s("line", { class: "grid", x1: 44, x2: 464, y1: y(part * top), y2: y(part * top) }),
      s("text", { class: "end small", x: 40, y: y(part * top) + 4 }, percent(part * top))]),
    s("polygon", { class: "band", points: [...high, ...low].join(" ") }),
    s("polyline", { class: "line", points: rows.map(([, share], i) => at(i, share)).join(" ") }),
    rows.map(([key, share], i) => [s("circle", { class: "filled", cx: x(i), cy: y(share), r: rows.length > 40 ? 1.5 : 3 }),
      !labelled[i] ? null : s("text", { class: "middle small", x: x(i), y: 170 }, key)]));
}

// documents -----------------------------------------------------------------------------------

const passage = (parts) =>
  parts.map((part) => (typeof part === "string" ? part : h("mark", { class: `m${part[1]}` }, part[0])));

const about = (one) => [one.group, one.time].filter(Boolean).join(" · ");

function cards(documents, title, name, more = null) {
  if (!documents.length) return null;
  const table = () => ({
    name: `${name} documents`,
    columns: ["document", "id", "group", "time", "share", "excerpt"],
    rows: documents.map((one) => [one.row, one.id, one.group, one.time, one.share,
      one.parts.map((part) => (typeof part === "string" ? part : part[0])).join("").trim()]),
  });
  return h("section", { "aria-label": title },
    h("div", { class: "bar-head" }, h("h2", {}, title), downloads("the documents", table)),
    h("ol", { class: "cards" }, documents.map((one) =>
      h("li", {},
        h("div", { class: "card-head" },
          h("a", { href: link(`document/${one.row}`), dir: "auto" }, one.id),
          h("span", { class: "meta" }, about(one) ? h("span", { dir: "auto" }, `${about(one)} · `) : null, `${percent(one.share)} of it`),
          overview.search && data.live ? h("a", { class: "quiet", href: toDocuments([one.row]), "aria-label": `More like ${one.id}` }, "more like this") : null),
        h("p", { dir: "auto" }, passage(one.parts))))),
    more);
}

function neighbours(list, title, name) {
  if (!list.length) return null;
  const table = () => ({ name: `${name} nearest`, columns: ["topic", "label", "words_in_common"], rows: list.map((one) => [one.number, label(one.number), one.affinity]) });
  return h("section", { "aria-label": title }, h("div", { class: "bar-head" }, h("h2", {}, title), downloads("the nearest topics", table)),
    h("p", { class: "meta" }, "by the share of words in common"),
    h("ul", { class: "chips" }, list.map((one) =>
      h("li", {}, h("a", { class: "chip", href: toTopic(one.number) }, h("bdi", {}, label(one.number)), " ",
        h("span", { class: "meta", title: "words in common" }, percent(one.affinity)))))));
}

// pages ---------------------------------------------------------------------------------------

const views = { topics, topic, map, compare, search, document: page, report };

const SORTS = {
  share: (a, b) => b.weight - a.weight,
  name: (a, b) => a.label.localeCompare(b.label),
  trust: (a, b) => (b.trust ?? -1) - (a.trust ?? -1),
};

async function topics(given) {
  if (!overview.topics.length) return searchOnly();
  const sort = Object.hasOwn(SORTS, given.get("sort")) ? given.get("sort") : "share";
  const chosen = new Set();
  const most = Math.max(...overview.topics.map((one) => one.weight));
  const tools = h("p", { class: "tools", hidden: true });
  const choose = (j, on) => {
    if (on) chosen.add(j);
    else chosen.delete(j);
    const some = [...chosen];
    tools.hidden = some.length < 2;
    tools.replaceChildren(count(some.length, "topic"), ": ",
      some.length === 2 ? h("a", { class: "button", href: link(`compare/${some.join("/")}`) }, "Compare") : "",
      " ", data.live && overview.mergeable ? h("button", { type: "button", onclick: () => merge(some) }, "Make one topic of them") : "");
  };
  const column = (key, text) => h("th", { scope: "col", "aria-sort": sort !== key ? null : key === "name" ? "ascending" : "descending" },
    h("a", { href: link("topics", key === "share" ? {} : { sort: key }) }, text, sort !== key ? "" : key === "name" ? " ▴" : " ▾"));
  const table = () => ({
    name: "topics",
    columns: ["topic", "label", "weight", "trust", "words", "relevant_words"],
    rows: overview.topics.map((one) => [one.number, one.label, one.weight, one.trust, one.words.join(", "), one.relevant.join(", ")]),
  });
  const examples = overview.examples.filter((word) => data.live || data.answers.words.words.includes(word));
  return {
    title: "Topics",
    body: [h("h1", {}, overview.title),
      h("p", { class: "lead" }, [overview.documents ? count(overview.documents, "document") : null, count(overview.topics.length, "topic"), count(overview.words, "word")].filter(Boolean).join(" · ")),
      examples.length ? h("p", {}, "Type a word above and read its topic at once, or try ",
        examples.map((word, i) => [i ? ", " : "", h("a", { href: toSearch(quoted(word)) }, word)]), ".")
        : overview.why ? h("p", { class: "note" }, overview.why) : null,
      data.live || !overview.search ? null : h("p", { class: "note" }, `This file answers ${count(data.answers.words.words.length, "word")}, one at a time; the live page answers any question.`),
      verdict(overview.report),
      h("div", { class: "bar-head" }, h("h2", {}, "All topics"), downloads("all topics", table)), tools,
      h("table", { class: "topics" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, h("span", { class: "unseen" }, "choose")), column("share", "Share"),
          column("name", "Topic"), h("th", { scope: "col" }, "Words"), column("trust", "Trust"))),
        h("tbody", {}, [...overview.topics].sort(SORTS[sort]).map((one) => h("tr", {},
          h("td", {}, h("input", { type: "checkbox", "aria-label": `Choose ${one.label}`, onchange: (event) => choose(one.number, event.target.checked) })),
          h("td", { class: "number share" }, bar(one.weight / most), percent(one.weight)),
          h("th", { scope: "row" }, h("span", { class: `key t${one.kin % COLOURS}`, "aria-hidden": "true" }), h("a", { href: toTopic(one.number), dir: "auto" }, one.label)),
          h("td", { class: "some", dir: "auto" }, one.relevant.join(", ")),
          h("td", { class: "number" }, trust(one.trust)))))) ],
  };
}

function searchOnly() {
  const words = get("words").then((found) => found.words.slice(0, 40));
  return words.then((some) => ({
    title: "Search",
    body: [h("h1", {}, overview.title), h("p", { class: "lead" }, `${count(overview.documents, "document")} · ${count(overview.words, "word")}`),
      h("p", {}, "Type a word above and read its topic at once. Frequent words:"),
      h("ul", { class: "chips" }, some.map((word) => h("li", {}, h("a", { class: "chip", href: toSearch(quoted(word)) }, word))))],
  }));
}

const trust = (value) => (value === null ? "–" : value >= 0.5 ? percent(value) : h("span", { class: "weak" }, percent(value)));

function verdict(report) {
  if (!report) return null;
  return h("p", { class: `note ${report.level}` }, report.verdict, " ", h("a", { href: link("report") }, "The report"));
}

function merge(numbers) {
  const names = numbers.map(label);
  return act(async () => {
    await change("merge", { topics: numbers });
    go(link("topics"));
  }, `${names.join(" and ")} are one topic now.`);
}

function heading(j) {
  const title = h("h1", { dir: "auto" }, label(j));
  const open = h("button", { type: "button", onclick: () => {
    const input = h("input", { id: "name", value: label(j), maxlength: 200, autocomplete: "off" });
    const form = h("form", { class: "rename", onsubmit: (event) => {
      event.preventDefault();
      act(() => rename(j, input.value), `The topic is called ${input.value} now.`);
    }, onkeydown: (event) => event.key === "Escape" && show(false) },
    h("label", { for: "name" }, "Name of the topic"), input, h("button", { type: "submit" }, "Save"),
    h("button", { type: "button", class: "quiet", onclick: () => show(false) }, "Cancel"));
    line.replaceChildren(form);
    input.select();
  } }, "Rename");
  const line = h("div", { class: "heading" }, title, open);
  return line;
}

async function topic(given, text) {
  const j = Number(text);
  const one = overview.topics[j];
  if (!one) throw new Trouble("There is no such topic.");
  const n = Number(given.get("n") || 10);
  const found = await get(`topic/${j}`, n > 10 ? { n } : {});
  const k = overview.topics.length;
  const more = data.live && found.documents.length === n && n < 100
    ? h("p", {}, h("a", { href: link(`topic/${j}`, { n: Math.min(100, 2 * n) }) }, "More documents")) : null;
  const rows = found.documents.map((card) => card.row);
  return {
    title: one.label,
    body: [heading(j),
      h("p", { class: "lead" }, `Topic ${j} · ${percent(one.weight)} of the text · `, stability(one.trust)),
      h("nav", { class: "steps", "aria-label": "Other topics" },
        h("a", { href: toTopic((j + k - 1) % k) }, "← previous"), h("a", { href: toTopic((j + 1) % k) }, "next →"),
        found.near.length ? h("a", { href: link(`compare/${j}/${found.near[0].number}`) }, "compare with the nearest") : null,
        overview.search && data.live && rows.length ? h("a", { href: toDocuments(rows.slice(0, 10)) }, "search from these documents") : null),
      h("div", { class: "two" },
        h("div", {}, wordBars(found.words, one.label), neighbours(found.near, "Nearest topics", one.label)),
        h("div", {}, cards(found.documents, "Typical documents", one.label, more),
          shares(found.groups, "group", byGroup(found.groups), one.label),
          shares(found.times, "time", `Share by ${found.period}`, one.label)))],
  };
}

function stability(value) {
  if (value === null) return "stability not checked";
  const kept = `keeps ${percent(value)} of its top words when half of the documents is left out`;
  return value >= 0.5 ? kept : h("span", { class: "weak" }, `${kept}: not stable`);
}

// in how many documents the words of a search are
function held(found) {
  const all = count(overview.documents, "document");
  if (found.held.length === 1) return ` · in ${found.held[0].toLocaleString("en")} of ${all}`;
  return found.held.map((n, i) => ` · ${found.include[i]} in ${n.toLocaleString("en")}`).join("") + (found.held.length ? ` of ${all}` : "");
}

async function search(given) {
  const hint = given.get("rows") ? { rows: given.get("rows") } : { q: given.get("q") || "" };
  const found = await get("search", hint);
  const title = found.rows.length ? `What ${count(found.rows.length, "document")} ${found.rows.length === 1 ? "is" : "are"} about` : [...found.include, ...found.exclude.map((word) => `without ${word}`)].join(", ");
  const query = (plus, minus) => toSearch([...plus.map(quoted), ...minus.map((word) => `-${quoted(word)}`)].join(" "));
  const refine = !data.live || found.rows.length ? null : (word) => found.include.includes(word) ? "" : [
    h("a", { class: "quiet", href: query([...found.include, word], found.exclude), "aria-label": `Add ${word}`, title: `Add ${word}` }, "+"),
    h("a", { class: "quiet", href: query(found.include, [...found.exclude, word]), "aria-label": `Exclude ${word}`, title: `Exclude ${word}` }, "−")];
  const rows = found.documents.map((card) => card.row);
  return {
    title,
    body: [h("h1", { dir: "auto" }, title),
      h("p", { class: "lead" }, `The topic that ${found.rows.length ? "these documents point" : found.include.length > 1 ? "these words point" : "this word points"} at${held(found)}`),
      h("div", { class: `note ${found.clear ? "good" : "care"}`, id: "verdict" },
        h("p", {}, h("strong", {}, found.clear ? "Clear: " : "Not clear: "), found.verdict),
        h("details", {}, h("summary", {}, found.reasons.length ? "Reasons and numbers" : "Numbers"),
          found.reasons.map((text) => h("p", {}, text)), h("p", {}, found.measured))),
      h("div", { class: "two" },
        h("div", {}, wordBars(found.words, title, refine), neighbours(found.near, "Nearest of all topics", title)),
        h("div", {},
          cards(found.documents, "Documents", title, data.live ? h("p", {}, h("a", { class: "button", href: toDocuments(rows) }, "Search again from these documents")) : null),
          shares(found.groups, "group", byGroup(found.groups), title, ROUGH),
          shares(found.times, "time", `Share by ${found.period}`, title, ROUGH)))],
  };
}

async function compare(given, a, b) {
  const [i, j] = [Number(a), Number(b)];
  if (!overview.topics[i] || !overview.topics[j] || i === j) throw new Trouble("There are no two such topics.");
  const [left, right] = await Promise.all([get(`topic/${i}`), get(`topic/${j}`)]);
  const [p, q] = [left, right].map((one) => new Map(one.words.map(([word, share]) => [word, share])));
  const rows = [...new Set([...p.keys(), ...q.keys()])].map((word) => [word, p.get(word) ?? null, q.get(word) ?? null]);
  const [own, shared, other] = [[], [], []];
  for (const row of rows) {
    const [p, q] = [row[1] || 0, row[2] || 0];
    (Math.max(p, q) <= ALIKE * Math.min(p, q) ? shared : p > q ? own : other).push(row);
  }
  const size = (row) => Math.max(row[1] || 0, row[2] || 0);
  const groups = [[`More in ${label(i)}`, own], ["In both", shared], [`More in ${label(j)}`, other]]
    .map(([title, some]) => [title, some.sort((x, y) => size(y) - size(x)).slice(0, 12)]).filter(([, some]) => some.length);
  const most = Math.max(...groups.flatMap(([, some]) => some.map(size)));
  const table = () => ({ name: `${label(i)} and ${label(j)}`, columns: ["word", label(i), label(j)], rows });
  const pick = (own, other, first) => h("select", { "aria-label": `${first ? "First" : "Second"} topic`, onchange: (event) => {
    go(link(`compare/${first ? `${event.target.value}/${other}` : `${other}/${event.target.value}`}`));
    show(false);
  } }, overview.topics.map((one) => h("option", { value: one.number, selected: one.number === own, disabled: one.number === other }, one.label)));
  return {
    title: `${label(i)} and ${label(j)}`,
    body: [h("h1", {}, "Two topics"), h("p", { class: "steps" }, pick(i, j, true), " and ", pick(j, i, false),
      data.live && overview.mergeable ? h("button", { type: "button", onclick: () => merge([i, j]) }, "Make one topic of the two") : null),
    h("div", { class: "bar-head" }, h("h2", {}, "Words"), downloads("the comparison", table)),
    h("p", { class: "meta" }, "A dash: the word is not among the first words of that topic. The files have more words."),
    h("table", { class: "words both" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Word"), h("th", { scope: "col", colspan: 2, dir: "auto" }, label(i)), h("th", { scope: "col", colspan: 2, dir: "auto" }, label(j)))),
      groups.map(([title, some]) => h("tbody", {}, h("tr", {}, h("th", { scope: "rowgroup", colspan: 5, class: "group", dir: "auto" }, title)),
        some.map(([word, one, two]) => h("tr", {}, h("th", { scope: "row" }, h("a", { href: toSearch(quoted(word)), dir: "auto" }, word)),
          h("td", { class: "wide" }, bar((one || 0) / most)), h("td", { class: "number" }, percent(one)),
          h("td", { class: "wide other" }, bar((two || 0) / most)), h("td", { class: "number" }, percent(two)))))))],
  };
}

async function map() {
  const [width, height] = [1000, 620];
  const most = Math.max(...overview.topics.map((one) => one.weight));
  const spots = overview.topics.map((one) => ({
    one, x: 90 + (width - 180) * one.place[0], y: 50 + (height - 100) * one.place[1], r: 6 + 34 * Math.sqrt(one.weight / most),
  })).sort((a, b) => b.r - a.r);
  const taken = [];
  const short = (text) => (text.length > 24 ? `${text.slice(0, 23)}…` : text);
  // a name stands in its circle, else below or above it, and is left out where none is free
  for (const spot of spots) {
    const half = 3.7 * Math.min(24, spot.one.label.length) + 3;
    for (const y of [spot.y, spot.y + spot.r + 11, spot.y - spot.r - 9]) {
      const box = [spot.x - half, spot.x + half, y - 9, y + 9];
      if (taken.some((other) => box[1] > other[0] && box[0] < other[1] && box[3] > other[2] && box[2] < other[3])) continue;
      taken.push(box);
      spot.at = y;
      break;
    }
  }
  const named = spots.filter((spot) => spot.at !== undefined);
  const picture = s("svg", { class: "map", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Map of topics" },
    spots.map(({ one, x, y, r }) => s("a", { href: toTopic(one.number), "aria-label": `${one.label}, ${percent(one.weight)}` },
      s("title", {}, `${one.label}: ${one.relevant.slice(0, 6).join(", ")}`), s("circle", { class: `spot t${one.kin % COLOURS}`, cx: x, cy: y, r }))),
    named.map(({ one, x, at }) => s("text", { class: "middle name", x, y: at + 4, "aria-hidden": "true" }, short(one.label))));
  const table = () => ({ name: "map", columns: ["topic", "label", "weight", "x", "y"], rows: overview.topics.map((one) => [one.number, one.label, one.weight, ...one.place]) });
  return {
    title: "Map",
    body: [h("div", { class: "bar-head" }, h("h1", {}, "Map of topics"), downloads("the map", table, () => picture)),
      h("p", { class: "lead" }, "Topics near each other share words, and so do those of one colour; a larger circle is a larger share of the text."),
      h("div", { class: "pan", tabindex: 0, role: "region", "aria-label": "The map" }, picture),
      h("details", {}, h("summary", {}, "Table"), h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Topic"), h("th", { scope: "col" }, "Share"))),
        h("tbody", {}, overview.topics.map((one) => h("tr", {}, h("th", { scope: "row" }, h("a", { href: toTopic(one.number), dir: "auto" }, one.label)), h("td", { class: "number" }, percent(one.weight)))))))],
  };
}

async function page(given, text) {
  const start = Number(given.get("from") || 0);
  const found = await get(`document/${text}`, start ? { from: start } : {});
  const colour = new Map(found.topics.filter(([, share]) => share >= 0.02).map(([j], i) => [j, i]));
  const painted = (word, j) => {
    const place = colour.get(j);
    return place === undefined ? word : h("span", { class: `t t${place % COLOURS}`, title: label(j) }, word);
  };
  const table = () => ({ name: `document ${found.id}`, columns: ["topic", "label", "share"], rows: found.topics.map(([j, share]) => [j, label(j), share]) });
  const words = () => ({ name: `words of ${found.id}`, columns: ["word", "count", "topic"], rows: found.words });
  const step = (from, name) => h("a", { href: link(`document/${text}`, from ? { from } : {}) }, name);
  const size = 20000;
  return {
    title: found.id,
    body: [h("h1", { dir: "auto" }, found.id), h("p", { class: "lead", dir: "auto" }, about(found)),
      h("nav", { class: "steps", "aria-label": "This document" }, overview.search && data.live ? h("a", { href: toDocuments([found.row]) }, "search for more like this") : null),
      h("div", { class: "two reading" },
        found.topics.length ? h("section", { "aria-label": "Topics" },
          h("div", { class: "bar-head" }, h("h2", {}, "Its topics"), downloads("its topics", table)),
          h("table", { class: "words" }, h("tbody", {}, found.topics.map(([j, share]) =>
            h("tr", {}, h("th", { scope: "row" }, colour.has(j) ? h("span", { class: `key t${colour.get(j) % COLOURS}`, "aria-hidden": "true" }) : null,
              h("a", { href: toTopic(j), dir: "auto" }, label(j))), h("td", { class: "wide" }, bar(share)), h("td", { class: "number" }, percent(share))))))) : null,
        h("section", { "aria-label": "Text" },
          h("div", { class: "bar-head" }, h("h2", {}, found.parts.length ? "Text" : "Words"), found.words.length ? downloads("its words", words) : null),
          found.parts.length
            ? h("div", { class: "text", dir: "auto" }, found.parts.map((part) => (typeof part === "string" ? part : painted(...part))))
            : h("p", { class: "text" }, found.words.map(([word, n, j]) => [painted(word, j), n === 1 ? " " : ` ×${Number(n.toPrecision(3))} `])),
          found.characters > size ? h("nav", { class: "steps", "aria-label": "Pages" },
            `Characters ${(found.from + 1).toLocaleString("en")} to ${found.until.toLocaleString("en")} of ${found.characters.toLocaleString("en")}`,
            found.from ? step(Math.max(0, found.from - size), "← before") : null,
            data.live && found.until < found.characters ? step(found.until, "after →") : null) : null))],
  };
}

async function report() {
  const part = (title, one) => one ? h("section", { "aria-label": title }, h("h2", {}, title),
    h("p", { class: `note ${one.level}` }, one.verdict), one.lines.map((line) => h("p", {}, line)),
    h("details", {}, h("summary", {}, "Everything that was measured"), h("pre", {}, one.full))) : null;
  return {
    title: "Report",
    body: [h("h1", {}, "How far to trust it"), part("The topics", overview.report), part("The search", overview.search),
      overview.why ? h("p", { class: "note" }, overview.why) : null],
  };
}

// the head: pages, the search box with its suggestions, undo, light and dark ------------------

function head(kind, given) {
  const entry = (name, text) => h("a", { href: link(name), "aria-current": kind === name ? "page" : null }, text);
  byId("pages").replaceChildren(...(overview.topics.length ? [entry("topics", "Topics"), entry("map", "Map")] : []), entry("report", "Report"));
  const box = byId("query");
  if (box && box !== document.activeElement) box.value = (kind === "search" && given.get("q")) || "";
  byId("undo").hidden = !(data.live && overview.changes);
}

function suggestions(box) {
  const list = h("ul", { id: "suggestions", role: "listbox", "aria-label": "Words", hidden: true });
  let words = null;
  let active = -1;
  let asked = 0;
  const close = () => {
    asked += 1;
    list.hidden = true;
    active = -1;
    fill(box, { "aria-expanded": "false" }, []);
    box.removeAttribute("aria-activedescendant");
  };
  const last = () => box.value.match(/(?:^|\s)(-?)("?)([^\s"]*)$/);
  const take = (word) => {
    const [, minus, quote, typed] = last();
    box.value = box.value.slice(0, box.value.length - (minus + quote + typed).length) + minus + quoted(word);
    close();
  };
  const mark = (to) => {
    active = to;
    [...list.children].forEach((one, i) => one.setAttribute("aria-selected", String(i === active)));
    if (active >= 0) box.setAttribute("aria-activedescendant", `word-${active}`);
    else box.removeAttribute("aria-activedescendant");
  };
  const open = async () => {
    const mine = ++asked;
    words ??= (await get("words")).words;
    if (mine !== asked) return;
    const typed = (last()?.[3] || "").toLowerCase();
    if (!typed) return close();
    const found = [];
    for (const test of [(word) => word.toLowerCase().startsWith(typed), (word) => word.toLowerCase().includes(typed)])
      for (const word of words) {
        if (found.length === 8) break;
        if (word !== typed && test(word) && !found.includes(word)) found.push(word);
      }
    list.replaceChildren(...found.map((word, i) => h("li", { id: `word-${i}`, role: "option", "aria-selected": "false",
      onmousedown: (event) => {
        event.preventDefault();
        take(word);
        box.form.requestSubmit();
      } }, word)));
    list.hidden = !found.length;
    fill(box, { "aria-expanded": String(!!found.length) }, []);
    active = -1;
  };
  box.addEventListener("input", open);
  box.addEventListener("blur", close);
  box.addEventListener("keydown", (event) => {
    const n = list.hidden ? 0 : list.children.length;
    if (event.key === "Escape" && n) {
      event.preventDefault();
      close();
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && n) {
      event.preventDefault();
      mark(event.key === "ArrowDown" ? (active + 1) % n : (active > 0 ? active : n) - 1);
    } else if (event.key === "Enter" && active >= 0) {
      take(list.children[active].textContent);
    }
  });
  return list;
}

function begin() {
  const box = h("input", { id: "query", type: "search", name: "q", placeholder: "a word, and -words to exclude", maxlength: 500,
    autocomplete: "off", autocapitalize: "none", spellcheck: "false", role: "combobox", "aria-label": "Search a topic by its words",
    "aria-expanded": "false", "aria-controls": "suggestions", "aria-autocomplete": "list" });
  const form = h("form", { role: "search", onsubmit: (event) => {
    event.preventDefault();
    if (!box.value.trim()) return;
    go(toSearch(box.value.trim()));
    show();
  } }, box, suggestions(box), h("button", { type: "submit" }, "Search"));
  byId("head").replaceChildren(
    h("a", { class: "unseen skip", href: "#main", onclick: (event) => {
      event.preventDefault();
      main.focus();
    } }, "To the content"),
    h("a", { class: "brand", href: "#/topics", dir: "auto" }, overview.title),
    overview.search ? form : "",
    h("nav", { id: "pages", "aria-label": "Pages" }),
    h("button", { id: "undo", type: "button", class: "quiet", hidden: true, onclick: () => act(() => change("undo", {}), "The last change is taken back.") }, "Undo"),
    h("button", { type: "button", class: "quiet", "aria-label": "Light or dark", onclick: shade }, "◐"));
  document.body.append(h("p", { id: "said", class: "unseen", "aria-live": "polite" }),
    h("footer", {}, data.live ? "" : "A copy in one file. Names that are changed here are gone when it is closed. ", "Made with thirdmoment. Press / to search."));
  addEventListener("popstate", () => {
    address = location.hash;
    show();
  });
  // links are followed here, so that they work in a frame without an address too
  document.addEventListener("click", (event) => {
    const to = event.target.closest?.("a[href^='#/']")?.getAttribute("href");
    if (!to || event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    event.preventDefault();
    const [path, query] = to.slice(2).split("?");
    const given = new URLSearchParams(query);
    given.delete("r"); // the slider may have moved since the link was made
    go(link(path, given));
    show();
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, select, textarea");
    if (event.key === "/" && !typing && overview.search) {
      event.preventDefault();
      box.focus();
      box.select();
    }
  });
  show(false);
}

function shade() {
  const root = document.documentElement;
  const dark = (root.style.colorScheme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  root.style.colorScheme = dark ? "light" : "dark";
}

begin();
