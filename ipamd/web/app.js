// Owns the page: which view the address bar names, the token, and looking again every few seconds.

import { Refused, token } from "./api.js";
import { el, link } from "./dom.js";
import { VIEWS } from "./views.js";

const AGAIN_MS = 10_000;
const byId = (id) => document.getElementById(id);
let shows = 0;

function wanted() {
  const [name, ...parts] = location.hash.replace(/^#\//, "").split("/").map(decoded);
  return VIEWS[name] ? { name, argument: parts.join("/") || undefined } : { name: "pools", argument: undefined };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function show() {
  const mine = ++shows;
  const { name, argument } = wanted();
  tabs(name);
  try {
    const made = await VIEWS[name].show(argument);
    if (mine !== shows) return;
    byId("view").replaceChildren(...[made].flat().filter(Boolean));
    notice(null);
    byId("foot").replaceChildren(`${location.host}, looked at ${new Date().toLocaleTimeString()}`);
  } catch (error) {
    if (mine === shows) refused(error);
  }
  byId("leave").hidden = token.get() === null;
}

function refused(error) {
  if (!(error instanceof Refused)) throw error;
  if (error.status === 401) return signIn(token.get() === null ? null : error.message);
  notice(error.message);
  if (error.status !== 0) byId("view").replaceChildren();
}

function signIn(why) {
  const secret = el("input", { type: "password", name: "secret", autocomplete: "off", required: "", "aria-label": "Token" });
  const form = el("form", { class: "card" },
    el("p", {}, "This server asks for a token. One of the role reader is enough: "),
    el("p", {}, el("code", {}, "ipamctl token create page --role reader")),
    secret, " ", el("button", {}, "Look"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    token.set(secret.value.trim());
    show();
  });
  token.drop();
  notice(why);
  byId("view").replaceChildren(form);
  secret.focus();
}

function notice(text) {
  byId("notice").hidden = text === null;
  byId("notice").textContent = text ?? "";
}

function tabs(current) {
  byId("tabs").replaceChildren(...Object.entries(VIEWS).filter(([, view]) => view.title).map(([name, view]) => {
    const made = link(view.title, name);
    if (name === current) made.setAttribute("aria-current", "page");
    return made;
  }));
}

function find(event) {
  event.preventDefault();
  const text = new FormData(event.target).get("text").trim();
  if (!text) return;
  const isAddress = /^[0-9.]+$/.test(text) || (text.includes(":") && /^[0-9a-fA-F:.]+$/.test(text));
  const view = isAddress ? "address" : text.includes("/") ? "pod" : "node";
  location.hash = `#/${view}/${encodeURIComponent(text)}`;
}

byId("find").addEventListener("submit", find);
byId("leave").addEventListener("click", () => { token.drop(); location.reload(); });
addEventListener("hashchange", show);
setInterval(() => { if (!document.hidden && byId("view").querySelector("form") === null) show(); }, AGAIN_MS);
show();
