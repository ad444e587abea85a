// Asks for a token, which the server keeps in a cookie that no script reads, and shows the page where that may be seen.

import { say } from "./elements.js";

const [login, token, namespace, why] = ["login", "token", "namespace", "why"].map((id) => document.getElementById(id));

// Of which namespace it is to be, as the page's address names it.
const queryOf = (name) => (name ? `?${new URLSearchParams({ namespace: name })}` : "");

// In a header, which no page of another origin can send.
async function show(query, headers) {
  try {
    const answer = await fetch(`session${query}`, { headers });
    if (answer.ok) location.replace(`./${query}`);
    else say(why, (await answer.text()).trim());
  } catch {
    say(why, "who serves it does not answer");
  }
}

login.addEventListener("submit", (event) => {
  event.preventDefault();
  show(queryOf(namespace.value.trim()), { Authorization: `Bearer ${token.value.trim()}` });
});

namespace.value = new URLSearchParams(location.search).get("namespace") ?? "";
// Why the token that is kept is not enough.
show(queryOf(namespace.value), {});
