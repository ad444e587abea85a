// Follows what /events tells, and draws it.

import { fillDevice, makeDevice } from "./device.js";
import { element, keep, keeping, say, sum } from "./elements.js";

// Where a connection was refused, a browser does not try again by itself.
const AGAIN_MS = 3000;
// Drawn at a time: what is left comes after it, so that a thousand devices keep nobody from seeing the first.
const SLICE_MS = 30;

const page = Object.fromEntries(
  ["sum", "state", "nobody", "notice", "nodes", "waiting", "waits"].map((id) => [id, document.getElementById(id)]),
);
// The query names a namespace, where it is of one alone.
const EVENTS = `events${location.search}`;
let history = { steps: 90, stepS: 10, lines: {} };
let seenMs = Date.now();
let picture = null;

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
  say(at.fault, node.fault ? `cannot be read: ${node.fault}` : node.stale);
  at.devices.classList.toggle("stale", Boolean(node.stale));
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
  say(page.notice, picture.notice);
  keep(page.waits, picture.waiting, makeWait, fillWait);
  page.waiting.hidden = picture.waiting.length === 0;
  const nodes = picture.nodes.map((node) => ({ ...node, id: node.name }));
  keep(page.nodes, nodes, makeNode, fillNode);
  for (const [place, node] of nodes.entries()) {
    const made = page.nodes.children[place].at.devices;
    const fill = (item, device) => fillDevice(item, device, history);
    yield* keeping(made, node.devices, () => makeDevice(history.steps), fill);
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
  const since = picture === null ? "nothing is seen yet" : `stale since ${clock.join(":")}`;
  say(page.state, why ? `${since}: ${why}` : "live");
  page.state.className = why ? "stale" : "live";
  document.body.classList.toggle("stale-picture", Boolean(why));
}

function follow() {
  const events = new EventSource(EVENTS);
  events.addEventListener("picture", ({ data }) => {
    const told = JSON.parse(data);
    if (told.picture !== null) ({ seenMs, picture } = told);
    tellState(told.stale);
    draw();
  });
  events.addEventListener("history", ({ data }) => {
    history = JSON.parse(data);
    draw();
  });
  events.addEventListener("error", async () => {
    tellState("who serves it does not answer");
    if (events.readyState !== EventSource.CLOSED) return;
    await tellRefusal();
    setTimeout(follow, AGAIN_MS);
  });
}

// Why it is not followed, of which an EventSource tells nothing; who is not let in any more is asked who he is.
async function tellRefusal() {
  const over = new AbortController();
  try {
    const answer = await fetch(EVENTS, { signal: over.signal });
    if (answer.status === 401 || answer.status === 403) location.reload();
    if (!answer.ok) tellState((await answer.text()).trim());
  } catch {
    // It does not answer, as is said already.
  }
  over.abort();
}

// Over TLS somebody was asked who he is, and has a token to forget.
if (location.protocol === "https:") {
  const forget = element("a", "", "Forget the token");
  forget.href = "forget";
  page.state.after(forget);
}

follow();
