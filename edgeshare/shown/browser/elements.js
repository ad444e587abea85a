// Makes and fills elements of the page. What others named (allocations, causes) comes in by textContent and nowhere else.

export function element(kind, className, ...children) {
  const made = document.createElement(kind);
  made.className = className;
  made.append(...children);
  return made;
}

export function say(where, text) {
  if (where.textContent !== text) where.textContent = text;
  where.hidden = text === "";
}

// Makes the children of `parent` those of `items`, in their order, one a step, and keeps those that are there: what
// somebody has opened or is at with the keyboard stays as it is. Another one may begin where this one is left unfinished.
export function* keeping(parent, items, make, fill) {
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

export function keep(...all) {
  const steps = keeping(...all);
  while (!steps.next().done);
}

export const percent = (value) => `${Math.round(value * 10) / 10} %`;
export const sum = (numbers) => numbers.reduce((all, each) => all + each, 0);
