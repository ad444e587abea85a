// One device: how it is, what its allocations have of it, and their use in the last minutes.

import { element, keep, percent, say, sum } from "./elements.js";

const SVG = "http://www.w3.org/2000/svg";
const COLOURS = 6;
// Of a line: a unit a percent, and a margin in which its own width has room.
const HEIGHT = 100;
const MARGIN = 5;

let cards = 0;

// Its list item; the line in it has so many steps.
export function makeDevice(steps) {
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
  at.svg.setAttribute("viewBox", `0 ${-MARGIN} ${steps} ${HEIGHT + 2 * MARGIN}`);
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

export function fillDevice(item, device, history) {
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
  fillLine(item, device, history);
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

function fillLine(item, device, history) {
  const { svg, line, caption } = item.at;
  const shown = device.shares.some((each) => each.used_percent !== null);
  line.hidden = !shown;
  if (!shown) return;
  const lines = history.lines[device.id] ?? {};
  const paths = device.shares.map((each) => pathOf([...(lines[each.id] ?? []), each.used_percent], history.steps));
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

function pathOf(values, steps) {
  let path = "";
  let pen = "M";
  const first = steps - values.length;
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
