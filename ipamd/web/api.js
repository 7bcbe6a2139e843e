// Owns asking the public API. The token lives in this tab's session storage: no cookie, so no other page can use it.

const KEY = "ipamd.token";

export class Refused extends Error {
  constructor(status, detail, document = {}) {
    super(detail);
    this.status = status;
    this.document = document;
  }
}

export const token = {
  get: () => sessionStorage.getItem(KEY),
  set: (secret) => sessionStorage.setItem(KEY, secret),
  drop: () => sessionStorage.removeItem(KEY),
};

/** One answer of the API; what is true of this member only (no leader, or `stale`) is marked. */
export async function ask(path, query = {}, { stale = false } = {}) {
  const url = new URL(path, location.origin);
  for (const [name, value] of Object.entries(query)) if (value != null && value !== "") url.searchParams.set(name, value);
  if (stale) url.searchParams.set("stale", "ok");
  const headers = { Accept: "application/json" };
  if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
  let answer;
  try {
    answer = await fetch(url, { headers, credentials: "omit", cache: "no-store" });
  } catch {
    throw new Refused(0, `${location.host} does not answer`);
  }
  if (answer.status === 503 && !stale) return ask(path, query, { stale: true });
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, body.detail ?? answer.statusText, body);
  return { ...body, stale: answer.headers.get("Ipamd-Stale") === "true" };
}
