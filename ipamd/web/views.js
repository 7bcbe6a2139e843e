// Owns the views: each asks the API and makes one element of the answer. Counts beyond 2^53 come as text.

import { ask } from "./api.js";
import { el, facts, link, table, time } from "./dom.js";

const STATES = ["bound", "held", "cooling", "quarantined", "withheld", "elsewhere", "free"];
const SVG = "http://www.w3.org/2000/svg";
const PAGE = 50;
const LOOKED = 2000;

export const VIEWS = {
  pools: { title: "Pools", show: pools },
  reservations: { title: "Reservations", show: reservations },
  nodes: { title: "Nodes", show: nodes },
  events: { title: "Events", show: events },
  cluster: { title: "Cluster", show: cluster },
  pool: { show: pool },
  pod: { show: pod },
  node: { show: node },
  address: { show: address },
};

async function pools(cursor) {
  const list = await ask("/v1/pools", { limit: PAGE, cursor });
  const usages = await Promise.all(list.items.map((one) => ask(`/v1/pools/${encodeURIComponent(one.name)}/usage`)));
  const rows = list.items.flatMap((one, at) => familiesOf(usages[at]).map(([family, counts]) => [
    link(one.name, "pool", one.name), one.space, subnetsOf(one, family), bar(counts), used(counts), doubts(counts),
  ]));
  return [stale(list), legend(),
    table(["pool", "space", "subnets", "addresses", "in use", ""], rows, "There is no pool yet: ipamctl pool create"),
    more(list, "pools")];
}

async function pool(name) {
  const path = `/v1/pools/${encodeURIComponent(name)}`;
  const [one, usage, why] = await Promise.all([ask(path), ask(`${path}/usage`), ask(`${path}/why`)]);
  const counted = familiesOf(usage).map(([family, counts]) => [
    family === "ipv4" ? "IPv4" : "IPv6", bar(counts), ...STATES.map((state) => amount(counts[state])), amount(counts.total),
  ]);
  const ranges = why.ranges.map((range) => [range.subnet, `${range.first} to ${range.last}`, amount(range.free), range.verdict]);
  return [stale(one), el("h2", {}, `Pool ${name}`),
    facts([["space", one.space], ["strategy", one.strategy], ["cooldown", `${one.cooldown_s} s`], ["reclaim", one.reclaim],
      ["next ADD", why.granted ? `would get ${why.addresses.join(", ")}` : why.detail]]),
    el("h2", {}, "Addresses"), legend(), table(["family", "", ...STATES, "total"], counted, "None"),
    el("h2", {}, "Ranges"), table(["subnet", "bounds", "free", "for an ADD"], ranges, "None"),
    el("h2", {}, "Who holds them"), await held({ pool: name })];
}

async function reservations(cursor) {
  return held({ cursor });
}

async function held({ cursor, ...filter }) {
  const list = await ask("/v1/reservations", { ...filter, limit: PAGE, cursor });
  const rows = list.items.flatMap((one) => one.attachments.map((attachment) => [
    link(one.pool, "pool", one.pool), podLink(one.pod_ref), attachment.ifname, attachment.addresses.map(addressLink),
    attachment.node == null ? null : link(attachment.node, "node", attachment.node), attachment.state, time(attachment.since),
  ]));
  const none = Object.keys(filter).length ? "Nothing is reserved here." : "Nothing is reserved.";
  return el("div", {}, stale(list),
    table(["pool", "pod", "interface", "addresses", "node", "state", "since"], rows, none), more(list, "reservations", filter));
}

async function pod(podRef) {
  return [el("h2", {}, `Pod ${podRef}`), await held({ pod_ref: podRef }), el("h2", {}, "What happened"), await recent(
    (event) => event.pod_ref === podRef)];
}

async function nodes(cursor) {
  const list = await ask("/v1/nodes", { limit: PAGE, cursor });
  const silence = list.mass_silence && el("p", { class: "bad" },
    "So many nodes fell silent at once that nothing is reclaimed: look, then ipamctl node confirm");
  const rows = list.items.map((one) => [
    link(one.name, "node", one.name), one.state === "lost" || one.state === "clash" ? bad(one.state) : one.state, one.bound,
    time(one.reported), one.silent_s == null ? null : `${one.silent_s} s`, one.spooled, one.conflicts,
  ]);
  return [stale(list), silence,
    table(["node", "state", "bound", "last report", "silent for", "spooled DELs", "conflicts"], rows, "No node has called yet."),
    more(list, "nodes")];
}

async function node(name) {
  const one = await ask(`/v1/nodes/${encodeURIComponent(name)}`);
  const rows = one.attachments.map((attachment) => [
    link(attachment.pool, "pool", attachment.pool), podLink(attachment.pod_ref), attachment.ifname,
    attachment.addresses.map(addressLink), attachment.state, aliveText(attachment.alive), time(attachment.since),
  ]);
  return [stale(one), el("h2", {}, `Node ${name}`),
    facts([["state", one.state], ["last report", time(one.reported)], ["spooled DELs", one.spooled], ["conflicts", one.conflicts],
      ["if it is dead for good", one.state === "lost" ? `ipamctl node release ${name}` : null]]),
    el("h2", {}, "What it holds"),
    table(["pool", "pod", "interface", "addresses", "state", "namespace", "since"], rows, "It holds nothing.")];
}

async function events() {
  return el("div", {}, await recent(() => true));
}

async function address(text) {
  const path = `/v1/addresses/${encodeURIComponent(text)}`;
  const [one, history] = await Promise.all([ask(path), ask(`${path}/history`, { limit: 50 })]);
  const rows = history.items.map((holding) => [
    link(holding.pool, "pool", holding.pool), podLink(holding.pod_ref), holding.ifname, holding.node, time(holding.from),
    holding.to == null ? "until now" : time(holding.to),
  ]);
  return [stale(one), el("h2", {}, `Address ${one.address}`),
    facts([["state", one.state], ["why", one.reason], ["pools", one.pools.join(", ")], ["pod", podLink(one.pod_ref)],
      ["interface", one.ifname], ["node", one.node], ["since", time(one.since)]]),
    el("h2", {}, "Who had it"),
    table(["pool", "pod", "interface", "node", "from", "to"], rows, "Nobody, as far as events are kept.")];
}

async function cluster() {
  const one = await ask("/v1/cluster");
  const rows = one.members.map((member) => [
    member.name === one.leader ? `${member.name} (leader)` : member.name,
    member.reachable ? "reachable" : bad("not reachable"), member.voter ? "votes" : "follows", member.index, member.lag,
    member.certificate_days == null ? null : `${member.certificate_days} days`, member.api,
  ]);
  return [stale(one),
    facts([["cluster", one.cluster_id], ["leader", one.leader ?? bad("none")], ["term", one.term], ["index", one.index]]),
    el("h2", {}, "Members"), table(["member", "", "", "index", "lag", "certificate", "API"], rows, "None")];
}

/** The newest events that are wanted, newest first: the last two thousand are looked through. */
async function recent(wanted) {
  const page = await behind(Math.max(0, await newest() - LOOKED));
  const rows = page.items.filter(wanted).reverse().slice(0, 200).map((event) => [
    event.index, time(event.at), event.kind, event.pool == null ? null : link(event.pool, "pool", event.pool),
    event.pod_ref == null ? null : podLink(event.pod_ref), event.address == null ? null : addressLink(event.address),
    event.node, event.by, event.detail,
  ]);
  return el("div", {},
    table(["#", "at", "what", "pool", "pod", "address", "node", "by", "detail"], rows, "Nothing, lately."));
}

/** The index of the newest event: one that cannot be there yet is refused, and the refusal says it. */
async function newest() {
  try {
    await ask("/v1/events", { after: Number.MAX_SAFE_INTEGER, limit: 1 });
  } catch (error) {
    if (error.document?.code === "gone") return error.document.newest;
    throw error;
  }
  return 0;
}

/** The events behind an index; where some of those are kept no longer, all that are. */
async function behind(after) {
  try {
    return await ask("/v1/events", { after, limit: LOOKED });
  } catch (error) {
    if (error.document?.code !== "gone") throw error;
    return ask("/v1/events", { limit: LOOKED });
  }
}

const familiesOf = (usage) => Object.entries(usage).filter(([name]) => name.startsWith("ipv"));
const isFamily = (subnet, family) => subnet.includes(":") === (family === "ipv6");
const subnetsOf = (one, family) => one.ranges.flat().map((range) => range.subnet).filter((it) => isFamily(it, family)).join(", ");
const amount = (count) => (typeof count === "string" ? Number(count).toExponential(2) : count);
const bad = (text) => el("span", { class: "bad" }, text);
const podLink = (podRef) => (podRef == null ? null : link(podRef, "pod", podRef));
const addressLink = (text) => el("div", {}, link(text, "address", text.split("/")[0]));
const aliveText = (alive) => (alive == null ? "not seen" : alive ? "there" : "gone");
const stale = (answer) => (answer.stale ? el("p", { class: "bad" }, "No leader: this is what this member knew last.") : null);

function used(counts) {
  const [total, free] = [Number(counts.total), Number(counts.free)];
  return total === 0 ? "0 %" : `${(100 * (total - free) / total).toFixed(free < total && free / total > 0.99 ? 2 : 0)} %`;
}

function doubts(counts) {
  const said = ["suspect", "lost"].filter((state) => counts[state] > 0).map((state) => `${counts[state]} ${state}`);
  return said.length ? bad(said.join(", ")) : null;
}

/** A bar drawn with attributes: styles in elements are not allowed to this page. */
function bar(counts) {
  const total = Number(counts.total) || 1;
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("viewBox", "0 0 1000 10");
  drawing.setAttribute("preserveAspectRatio", "none");
  let left = 0;
  for (const state of STATES.filter((one) => Number(counts[one]) > 0 && one !== "free")) {
    const part = document.createElementNS(SVG, "rect");
    const width = Math.max(2, 1000 * Number(counts[state]) / total);
    for (const [name, value] of Object.entries({ x: left, y: 0, width, height: 10, class: state })) part.setAttribute(name, value);
    left += width;
    drawing.append(part);
  }
  const title = STATES.map((state) => `${counts[state]} ${state}`).join(", ");
  return el("div", { class: "bar", title, role: "img", "aria-label": title }, drawing);
}

function legend() {
  return el("p", { class: "dim" }, STATES.map((state) => [el("span", { class: `key ${state}` }), state]).flat());
}

function more(list, view, filter = {}) {
  if (list.next == null) return null;
  return Object.keys(filter).length ? el("p", { class: "dim" }, "There are more: ipamctl reservation list") :
    el("p", {}, link("Next page", view, list.next));
}
