"use strict";
// Draws what /events tells. What others named (allocations, causes) comes in by textContent and nowhere else.

const SVG = "http://www.w3.org/2000/svg";
const COLOURS = 6;
// Where a connection was refused, a browser does not try again by itself.
const AGAIN_MS = 3000;
// Drawn at a time: what is left comes after it, so that a thousand devices keep nobody from seeing the first.
const SLICE_MS = 30;
// Of a line: a unit a percent, and a margin in which its own width has room.
const HEIGHT = 100;
const MARGIN = 5;

const page = Object.fromEntries(
  ["sum", "state", "nobody", "nodes", "waiting", "waits"].map((id) => [id, document.getElementById(id)]),
);
let history = { steps: 90, stepS: 10, lines: {} };
let seenMs = Date.now();
let picture = null;

function element(kind, className, ...children) {
  const made = document.createElement(kind);
  made.className = className;
  made.append(...children);
  return made;
}

function say(where, text) {
  if (where.textContent !== text) where.textContent = text;
  where.hidden = text === "";
}

// Makes the children of `parent` those of `items`, in their order, one a step, and keeps those that are there: what
// somebody has opened or is at with the keyboard stays as it is. Another one may begin where this one is left unfinished.
function* keeping(parent, items, make, fill) {
  const kept = (parent.kept ??= new Map());
  const seen = new Set();
  for (const [place, item] of items.entries()) {
    const id = item.id ?? String(place);
    const key = seen.has(id) ? `${id} ${place}` : id;
    seen.add(key);
    if (!kept.has(key)) kept.set(key, make(item));
    const child = kept.get(key);
    if (parent.children[place] !== child) parent.insertBefore(child, parent.children[place] ?? null);
    fill(child, item, place);
    yield;
  }
  for (const [key, child] of kept) {
    if (!seen.has(key)) {
      child.remove();
      kept.delete(key);
    }
  }
}

function keep(...all) {
  const steps = keeping(...all);
  while (!steps.next().done);
}

const percent = (value) => `${Math.round(value * 10) / 10} %`;
const sum = (numbers) => numbers.reduce((all, each) => all + each, 0);

// ---- one device

let cards = 0;

function makeDevice() {
  const title = element("h3", "");
  const at = {
    title,
    model: element("span", "model"),
    health: element("span", "badge"),
    cause: element("p", "cause"),
    warning: element("p", "warning"),
    how: element("p", "how"),
    bars: element("div", "bars"),
    line: element("figure", ""),
    svg: document.createElementNS(SVG, "svg"),
    caption: element("figcaption", ""),
    shares: element("ul", "shares"),
    nobody: element("p", "nobody"),
  };
  title.id = `device-${(cards += 1)}`;
  at.svg.setAttribute("viewBox", `0 ${-MARGIN} ${history.steps} ${HEIGHT + 2 * MARGIN}`);
  at.svg.setAttribute("preserveAspectRatio", "none");
  at.svg.setAttribute("role", "img");
  at.line.append(at.svg, at.caption);
  const card = element("article", "card", element("header", "", title, at.model, at.health));
  card.append(at.cause, at.warning, at.how, at.bars, at.line, at.shares, at.nobody);
  card.setAttribute("aria-labelledby", title.id);
  const item = element("li", "", card);
  item.at = at;
  return item;
}

function fillDevice(item, device) {
  const told = JSON.stringify(device);
  // Of a thousand devices few have changed.
  if (item.told !== told) {
    item.told = told;
    const { at } = item;
    say(at.title, device.name);
    say(at.model, device.model);
    say(at.health, device.cause ? "not healthy" : "healthy");
    at.health.className = device.cause ? "badge bad" : "badge good";
    say(at.cause, device.cause);
    say(at.warning, device.warning);
    const heat = device.temperature_c === null ? "" : `${Math.round(device.temperature_c)} °C`;
    say(at.how, [heat, device.mode].filter(Boolean).join(" · "));
    keep(at.bars, barsOf(device), makeBar, fillBar);
    keep(at.shares, device.shares, makeShare, fillShare);
    at.shares.hidden = device.shares.length === 0;
    say(at.nobody, device.shares.length === 0 ? "nobody has a share of it" : "");
  }
  fillLine(item, device);
}

// What a device's bars say: how much each allocation has of a whole.
function barsOf(device) {
  const { shares } = device;
  const bar = (id, name, whole, values, amount, others = 0) => ({ id, name, whole, values, amount, others, shares });
  const bars = [bar("asked", "Asked", 100, shares.map((each) => each.asked_percent), percent)];
  if (shares.some((each) => each.used_percent !== null)) {
    bars.push(bar("used", "Used", 100, shares.map((each) => each.used_percent ?? 0), percent));
  }
  if (device.memory_mib > 0) {
    const whole = device.memory_mib;
    const mib = (value) => `${value} of ${whole} MiB`;
    bars.push(bar("cap", "Memory asked", whole, shares.map((each) => each.memory_mib), mib));
    if (device.memory_used_mib !== null) {
      const used = shares.map((each) => each.memory_used_mib ?? 0);
      bars.push(bar("memory", "Memory used", whole, used, mib, Math.max(0, device.memory_used_mib - sum(used))));
    }
  }
  return bars;
}

function makeBar() {
  const bar = element("div", "bar");
  bar.setAttribute("role", "img");
  const row = element("div", "row", element("span", ""), bar, element("span", "amount"));
  return row;
}

function fillBar(row, { name, whole, values, amount, others, shares }) {
  const [label, bar, total] = row.children;
  say(label, name);
  say(total, amount(sum(values) + others));
  const parts = values.map((value, place) => ({ value, className: `part k${place % COLOURS}` }));
  if (others > 0) parts.push({ value: others, className: "part others" });
  keep(bar, parts, () => element("span", ""), (part, { value, className }) => {
    part.className = className;
    part.style.setProperty("--part", `${whole > 0 ? (100 * value) / whole : 0}%`);
  });
  const each = values.map((value, place) => `${shares[place].owner} ${amount(value)}`);
  if (others > 0) each.push(`others ${amount(others)}`);
  bar.setAttribute("aria-label", `${name}: ${each.join(", ") || "nothing"}`);
}

// ---- its line of the last minutes

function fillLine(item, device) {
  const { svg, line, caption } = item.at;
  const shown = device.shares.some((each) => each.used_percent !== null);
  line.hidden = !shown;
  if (!shown) return;
  const lines = history.lines[device.id] ?? {};
  const paths = device.shares.map((each) => pathOf([...(lines[each.id] ?? []), each.used_percent]));
  if (item.paths !== paths.join()) {
    item.paths = paths.join();
    const drawn = [50, ...paths.keys()].map((key, place) => {
      const path = document.createElementNS(SVG, "path");
      path.setAttribute("class", place === 0 ? "grid" : `k${key % COLOURS}`);
      path.setAttribute("d", place === 0 ? `M0 ${HEIGHT / 2}H${history.steps}` : paths[key]);
      return path;
    });
    svg.replaceChildren(...drawn);
  }
  const minutes = Math.round((history.steps * history.stepS) / 60);
  say(caption, `use of the last ${minutes} minutes, 0 to 100 %`);
  const now = device.shares.map((each) => `${each.owner} now ${percent(each.used_percent ?? 0)}`);
  svg.setAttribute("aria-label", `${caption.textContent}: ${now.join(", ")}`);
}

function pathOf(values) {
  let path = "";
  let pen = "M";
  const first = history.steps - values.length;
  values.forEach((value, place) => {
    if (value === null) {
      pen = "M";
      return;
    }
    path += `${pen}${first + place + 1} ${HEIGHT - Math.min(value, 100)}`;
    // A point alone is seen, too.
    if (pen === "M") path += "h0.01";
    pen = "L";
  });
  return path;
}

// ---- an allocation

function makeShare(share) {
  const at = {
    swatch: element("span", "swatch"),
    owner: element("span", "owner"),
    badge: element("span", "badge"),
    has: element("span", "has"),
    facts: element("dl", ""),
  };
  at.swatch.setAttribute("aria-hidden", "true");
  const head = [at.swatch, at.owner, " ", at.badge, at.has];
  const item = element("li", "");
  item.at = at;
  if (share.facts.length > 0) {
    at.details = element("details", "", element("summary", "", ...head), at.facts);
    // They are most of a page, and few are looked at.
    at.details.addEventListener("toggle", () => fillFacts(item));
    item.append(at.details);
  } else item.append(...head);
  return item;
}

function fillFacts({ at, facts }) {
  if (!at.details?.open) return;
  const cells = facts.flatMap(([name, text]) => [
    { id: name, kind: "dt", text: name },
    { id: `${name} is`, kind: "dd", text },
  ]);
  keep(at.facts, cells, ({ kind }) => element(kind, ""), (cell, { text }) => say(cell, text));
}

function fillShare(item, share, place) {
  const { at } = item;
  at.swatch.className = `swatch k${place % COLOURS}`;
  say(at.owner, share.owner);
  say(at.badge, share.guarantee && `guarantee ${share.guarantee}`);
  at.badge.className = share.guarantee === "missed" ? "badge bad" : "badge good";
  const used = share.memory_used_mib === null ? "" : `${share.memory_used_mib} of `;
  const has = [
    `asked ${percent(share.asked_percent)}`,
    share.limit_percent === null ? "" : `limit ${percent(share.limit_percent)}`,
    share.used_percent === null ? "" : `used ${percent(share.used_percent)}`,
    share.memory_mib > 0 ? `${used}${share.memory_mib} MiB` : "",
    share.state,
  ];
  say(at.has, has.filter(Boolean).join(" · "));
  item.facts = share.facts;
  fillFacts(item);
}

// ---- all of it

let groups = 0;

function makeNode() {
  const at = { title: element("h2", ""), fault: element("p", "fault"), devices: element("ul", "devices") };
  at.title.id = `node-${(groups += 1)}`;
  const group = element("section", "", at.title, at.fault, at.devices);
  group.setAttribute("aria-labelledby", at.title.id);
  group.at = at;
  return group;
}

function fillNode({ at }, node) {
  say(at.title, node.name);
  say(at.fault, node.fault && `cannot be read: ${node.fault}`);
}

function makeWait() {
  const at = { who: element("span", "owner"), what: element("span", ""), why: element("span", "has") };
  const item = element("li", "", at.who, " ", at.what, at.why);
  item.at = at;
  return item;
}

function fillWait({ at }, wait) {
  say(at.who, wait.who);
  say(at.what, wait.what);
  say(at.why, wait.why);
}

function* drawing() {
  const devices = picture.nodes.flatMap((node) => node.devices);
  const ill = devices.filter((each) => each.cause).length;
  const shares = sum(devices.map((each) => each.shares.length));
  const parts = [
    picture.nodes.some((each) => each.name) ? `${picture.nodes.length} nodes` : "",
    `${devices.length} devices${ill > 0 ? `, ${ill} not healthy` : ""}`,
    `${shares} allocations`,
    `${picture.waiting.length} waiting`,
  ];
  say(page.sum, parts.filter(Boolean).join(" · "));
  say(page.nobody, picture.nodes.length === 0 ? picture.nobody : "");
  keep(page.waits, picture.waiting, makeWait, fillWait);
  page.waiting.hidden = picture.waiting.length === 0;
  const nodes = picture.nodes.map((node) => ({ ...node, id: node.name }));
  keep(page.nodes, nodes, makeNode, fillNode);
  for (const [place, node] of nodes.entries()) {
    yield* keeping(page.nodes.children[place].at.devices, node.devices, makeDevice, fillDevice);
  }
}

let steps = null;
let waits = false;

function draw() {
  if (picture === null) return;
  steps = drawing();
  if (!waits) drawSlice();
}

function drawSlice() {
  const until = performance.now() + SLICE_MS;
  waits = false;
  while (!steps.next().done) {
    if (performance.now() > until) {
      waits = true;
      setTimeout(drawSlice);
      return;
    }
  }
}

function tellState(why) {
  const time = new Date(seenMs);
  const clock = [time.getHours(), time.getMinutes(), time.getSeconds()].map((each) => String(each).padStart(2, "0"));
  // A status that says the same is not said anew to who listens to it.
  say(page.state, why ? `stale since ${clock.join(":")}: ${why}` : "live");
  page.state.className = why ? "stale" : "live";
  document.body.classList.toggle("stale-picture", Boolean(why));
}

function follow() {
  const events = new EventSource("events");
  events.addEventListener("picture", ({ data }) => {
    const told = JSON.parse(data);
    seenMs = told.seenMs;
    picture = told.picture;
    tellState(told.stale);
    draw();
  });
  events.addEventListener("history", ({ data }) => {
    history = JSON.parse(data);
    draw();
  });
  events.addEventListener("error", () => {
    const refused = events.readyState === EventSource.CLOSED;
    tellState(refused ? "as many follow edgeshare top already as may" : "edgeshare top does not answer");
    if (refused) setTimeout(follow, AGAIN_MS);
  });
}

follow();
