// Owns making elements. Text from the API goes in as text only: no name can become markup.

export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value != null) made.setAttribute(name, value);
  made.append(...children.flat(Infinity).filter((child) => child != null).map(shown));
  return made;
}

export const link = (text, ...parts) => el("a", { href: `#/${parts.map(encodeURIComponent).join("/")}` }, text);

export function table(heads, rows, empty) {
  if (rows.length === 0) return el("p", { class: "empty" }, empty);
  const cells = (row) => row.map((cell) => el("td", typeof cell === "number" ? { class: "number" } : {}, cell));
  return el("table", {},
    el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, cells(row)))));
}

export function facts(pairs) {
  const present = pairs.filter(([, value]) => value != null && value !== "");
  return el("dl", {}, present.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

export function time(text) {
  if (text == null) return null;
  return el("time", { datetime: text, title: text }, new Date(text).toLocaleString());
}

/** Control characters and such that turn writing around are shown as escapes, so that a name cannot look like another. */
export function plain(text) {
  return String(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (one) => `\\u{${one.codePointAt(0).toString(16)}}`);
}

const shown = (child) => (child instanceof Node ? child : plain(child));
