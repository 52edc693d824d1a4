// The page: what is shown, and how it is kept up to date.

const $ = (id) => document.getElementById(id);
const api = "/v1alpha1";
const now = { pools: [], key: "", state: null, history: [], selected: "", order: "name", stream: null, token: sessionStorage.getItem("token") || "" };

function make(tag, text, className) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (className) e.className = className;
  return e;
}
function put(e, text) { if (e.textContent !== text) e.textContent = text; }
const pathOf = (key) => { const [ns, name] = key.split("/"); return `${api}/namespaces/${encodeURIComponent(ns)}/inferencepools/${encodeURIComponent(name)}`; };

// ask calls the lease API as the person who looks; who must say so is asked for a token.
async function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (now.token) headers.Authorization = "Bearer " + now.token;
  const reply = await fetch(path, { ...options, headers, cache: "no-store" });
  if (reply.ok) return reply;
  const problem = await reply.json().catch(() => ({ detail: "" }));
  if (reply.status === 401 || (reply.status === 403 && problem.reason === "Forbidden" && path === api + "/inferencepools")) await login(problem);
  throw Object.assign(new Error(problem.detail || problem.title || reply.statusText), { status: reply.status, problem });
}

function login(problem) {
  const box = $("login");
  if (box.open) return new Promise((done) => box.addEventListener("close", done, { once: true }));
  put($("login-why"), now.token ? `That token is not enough: ${problem.detail || problem.reason}` : "This router answers those it knows.");
  box.showModal();
  return new Promise((done) => {
    $("login-form").onsubmit = () => { now.token = $("token").value.trim(); sessionStorage.setItem("token", now.token); $("token").value = ""; };
    box.addEventListener("close", done, { once: true });
  });
}

function linkIs(state, text) { $("link").className = "link " + state; put($("link"), text); }
const rest = (ms) => new Promise((done) => setTimeout(done, ms));

// lookForPools keeps the list of pools up to date, for as long as the page lives.
async function lookForPools() {
  for (;;) {
    try {
      now.pools = holdOn((await (await ask(api + "/inferencepools")).json()).pools.map((p) => `${p.namespace}/${p.name}`));
      showPools();
    } catch (e) { linkIs("lost", e.status ? e.message : "No answer"); }
    await rest(now.pools.length ? 5000 : 1500);
  }
}

// holdOn keeps the pool that is looked at in the list for a while: a replica that is about to lead does not
// know it yet, and what was seen of it is worth more than an empty page.
function holdOn(pools) {
  const patience = 20_000, known = pools.includes(now.key);
  if (known || !now.key) now.missed = 0;
  else now.missed ||= Date.now();
  return now.missed && Date.now() - now.missed < patience ? [...pools, now.key] : pools;
}

function showPools() {
  const wanted = decodeURIComponent(location.hash.slice(2)) || now.key;
  const key = now.pools.includes(wanted) ? wanted : now.key && now.pools.includes(now.key) ? now.key : now.pools[0] || "";
  if ([...$("pool").options].map((o) => o.value).join() !== now.pools.join()) {
    $("pool").replaceChildren(...now.pools.map((p) => { const o = make("option", p); o.value = p; return o; }));
  }
  $("pool").value = key;
  $("empty").hidden = key !== "";
  if (!key) { $("body").hidden = true; put($("empty"), "There is no pool yet. It appears here once an inferencepools.inference.berthmaster.io object exists."); linkIs("live", "Live"); }
  if (key !== now.key) follow(key);
}

// follow watches one pool until another is chosen.
async function follow(key) {
  now.stream?.abort();
  const mine = now.stream = new AbortController();
  Object.assign(now, { key, state: null, history: [], selected: "" });
  $("events").replaceChildren(); $("no-events").hidden = false; $("found").replaceChildren(); $("strip").replaceChildren();
  let last = "", pause = 500;
  while (key && !mine.signal.aborted) {
    try {
      const reply = await ask(pathOf(key) + "/watch?every=1", { signal: mine.signal, headers: last ? { "Last-Event-ID": last } : {} });
      linkIs("live", "Live"); pause = 500;
      const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ""; ;) {
        const { value, done } = await reader.read();
        if (done) break;
        const { events, rest } = readEvents(text + value);
        text = rest;
        for (const e of events) { last = e.id || last; take(JSON.parse(e.data)); }
      }
      linkIs("lost", "Reconnecting");
    } catch (e) {
      if (mine.signal.aborted) return;
      linkIs("lost", e.status ? e.message : "Reconnecting");
    }
    await rest(pause); pause = Math.min(pause * 2, 8000);
  }
}

function take(event) {
  if (event.type !== "State") { tell(...eventText(event)); return; }
  if (now.state && !event.state.term) return; // a replica that does not lead yet knows less than was seen
  if (now.state) for (const c of changes(now.state, event.state)) tell(...c);
  else remember(now.key);
  now.state = event.state;
  show();
}

// remember tells what happened before this page was opened, below what has been told since.
async function remember(key) {
  const reply = await ask(pathOf(key) + "/recent").catch(() => null);
  const happenings = reply ? (await reply.json()).happenings : [];
  if (key !== now.key) return;
  const told = new Set([...$("events").children].map((li) => li.lastChild.textContent));
  const lines = happenings.map((h) => lineOf(new Date(h.time), ...recentText(h))).filter((li) => !told.has(li.lastChild.textContent));
  $("events").append(...lines.reverse());
  $("no-events").hidden = $("events").children.length > 0;
}

function lineOf(at, kind, text) {
  const li = make("li"), time = make("time", at.toLocaleTimeString("en-GB"));
  time.dateTime = at.toISOString();
  if (Date.now() - at > 86_400_000) put(time, `${at.toLocaleDateString("en-GB")} ${time.textContent}`);
  li.append(time, make("span", text, kind));
  return li;
}

function tell(kind, text) {
  $("events").prepend(lineOf(new Date(), kind, text));
  while ($("events").children.length > 200) $("events").lastChild.remove();
  $("no-events").hidden = true;
}

function show() {
  const pool = now.state, sum = summary(pool);
  $("body").hidden = false;
  showHead(pool, sum); showStrip(sum); showTrend(sum); showWeights(pool); showSenders(pool);
}

function showHead(pool, sum) {
  const [ns, name] = now.key.split("/");
  if (document.title !== `${name} · Berthmaster`) { document.title = `${name} · Berthmaster`; $("name").replaceChildren(make("span", ns + " / "), name); }
  const badges = [[pool.leasing === "Open" ? "good" : "warn", pool.leasing === "Open" ? "Leasing open" : "Leasing held"], ["", `epoch ${pool.epoch}`], ["", pool.term ? `term ${pool.term}` : "no term yet"]];
  if (pool.failure) badges.unshift(["bad", "Failed"]);
  if (sum.unknown) badges.push(["warn", `${plural(sum.unknown, "backend")} with unknown load`]);
  const said = badges.join();
  if ($("badges").dataset.said !== said) { $("badges").dataset.said = said; $("badges").replaceChildren(...badges.map(([kind, text]) => make("span", text, "badge " + kind))); }
  $("failure").hidden = !pool.failure;
  put($("failure"), pool.failure ? failureText(pool.failure) : "");
  tiles([
    ["Running", count(sum.outstanding), `of ${count(sum.capacity)}`, sum.held ? `${count(sum.held)} of them without a client` : `${percent(sum.capacity ? sum.outstanding / sum.capacity : 0)} of capacity`],
    ["Least to most loaded", `${percent(sum.min)} – ${percent(sum.max)}`, "", `skew ${sum.skew.toFixed(3)}`],
    ["Backends", count(sum.open), `of ${count(sum.members.length)}`, sum.open === sum.members.length ? "all take new sessions" : `${plural(sum.members.length - sum.open, "takes", "take")} no new sessions`],
    ["Sessions", count(pool.sessions), "", `${plural(pool.requests, "request record")} kept`],
    ["Waiting", count(pool.waiting), "", pool.waiting ? `longest ${duration(sum.longest)}` : "nobody waits"],
  ]);
}

function tiles(list) {
  const box = $("tiles");
  list.forEach(([term, figure, of, note], i) => {
    let tile = box.children[i];
    if (!tile) { tile = make("div"); tile.append(make("dt", term), make("dd"), make("dd", "", "note")); tile.children[1].append(make("span"), " ", make("small")); box.append(tile); }
    put(tile.children[1].firstChild, figure); put(tile.children[1].lastChild, of); put(tile.children[2], note);
  });
}

function ordered(members) {
  const list = [...members];
  if (now.order === "load") return list.sort((a, b) => loadOf(b) - loadOf(a));
  return list.sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
}

const sentence = (b) => `${b.name}: ${b.outstanding} of ${b.capacity} executions, ${percent(loadOf(b))}, ${why(b)}`;

function showStrip(sum) {
  const strip = $("strip"), list = ordered(sum.members), dense = list.length > 128;
  put($("spread"), `least ${percent(sum.min)}, mean ${percent(sum.mean)}, most ${percent(sum.max)}`);
  strip.classList.toggle("dense", dense);
  strip.style.setProperty("--cell", dense ? (list.length > 400 ? "16px" : "24px") : "76px");
  const prefix = prefixOf(list.map((b) => b.name));
  while (strip.children.length > list.length) strip.lastChild.remove();
  list.forEach((b, i) => {
    let cell = strip.children[i];
    if (!cell) { cell = make("div"); cell.setAttribute("role", "option"); cell.append(make("span"), make("b")); cell.id = "cell-" + i; strip.append(cell); }
    const said = sentence(b);
    if (cell.dataset.said !== said || cell.dataset.dense !== String(dense)) {
      Object.assign(cell.dataset, { said, dense, incarnation: b.incarnation });
      cell.className = "cell " + levelOf(b);
      cell.setAttribute("aria-label", said);
      cell.title = said;
      put(cell.children[0], dense ? "" : b.name.slice(prefix.length)); put(cell.children[1], dense ? "" : percent(loadOf(b)));
    }
    cell.setAttribute("aria-selected", String(b.incarnation === now.selected));
    if (b.incarnation === now.selected) strip.setAttribute("aria-activedescendant", cell.id);
  });
  showDetail(sum);
}

function showDetail(sum) {
  const chosen = sum.members.find((b) => b.incarnation === now.selected);
  const b = chosen || [...sum.members].sort((x, y) => loadOf(y) - loadOf(x))[0];
  put($("detail"), b ? `${chosen ? "" : "Most loaded: "}${sentence(b)}. ${plural(b.sessions, "session")}, ${b.held ? `${b.held} held, ` : ""}weights ${b.weightVersion || "unconfirmed"}${b.unknownLoad ? ", earlier executions may still run" : ""}. ${b.url}` : "The pool has no backend.");
  const off = sum.members.filter((m) => !m.admissible), most = 12;
  const said = off.map((m) => `${m.name} ${why(m)}`);
  if ($("attention").dataset.said === said.join()) return;
  $("attention").dataset.said = said.join();
  $("attention").replaceChildren(...said.slice(0, most).map((text) => make("li", text)), ...(said.length > most ? [make("li", `and ${said.length - most} more`)] : []));
}

function showTrend(sum) {
  const h = now.history, most = 120, least = 20;
  h.push({ at: Date.now() / 1000, min: sum.min, max: sum.max, all: sum.capacity ? sum.outstanding / sum.capacity : 0 });
  const end = h.at(-1).at;
  while (h[0].at < end - most) h.shift();
  const span = Math.max(least, end - h[0].at);
  const top = Math.max(1, ...h.map((p) => p.max));
  const point = (p, v) => `${(480 * (1 - (end - p.at) / span)).toFixed(1)},${(118 - 116 * v / top).toFixed(1)}`;
  $("band").setAttribute("d", `M${h.map((p) => point(p, p.max)).join("L")}L${[...h].reverse().map((p) => point(p, p.min)).join("L")}Z`);
  $("mean").setAttribute("d", `M${h.map((p) => point(p, p.all)).join("L")}`);
  put($("trend-now"), `last ${duration(Math.round(span))}; the top of the chart is ${percent(top)} of capacity`);
  $("trend").setAttribute("aria-label", `Load now ${percent(h.at(-1).all)}; ${plural(h.length, "look")} in the chart, between ${percent(Math.min(...h.map((p) => p.min)))} and ${percent(Math.max(...h.map((p) => p.max)))}.`);
}

function showWeights(pool) {
  const v = versions(pool);
  put($("rollout"), rolloutText(pool, v));
  const said = JSON.stringify(v);
  if ($("versions").dataset.said === said) return;
  $("versions").dataset.said = said;
  $("versions-bar").replaceChildren(...v.groups.map((g) => { const i = make("i", undefined, "v-" + g.role); i.style.flexGrow = g.names.length; return i; }));
  $("versions").replaceChildren(...v.groups.map((g) => {
    const li = make("li"), few = g.role === "now" || g.names.length > 6 ? "" : ": " + g.names.join(", ");
    li.append(make("i", undefined, "v-" + g.role), make("b", g.version || "unconfirmed"), make("span", `${plural(g.names.length, "backend")}${g.version ? ", " + g.label : ""}${few}`));
    return li;
  }));
}

function showSenders(pool) {
  const queues = new Map(pool.queues.map((q) => [q.sender, q]));
  const said = JSON.stringify([pool.senders, pool.queues.map((q) => [q.sender, q.waiting, Math.round(q.longestSeconds)])]);
  if ($("senders").dataset.said === said) return;
  $("senders").dataset.said = said;
  $("senders").replaceChildren(...pool.senders.map((s) => {
    const q = queues.get(s.name), row = make("tr"), head = make("th", s.name), access = make("td"), kind = s.access === "Open" ? "good" : "warn";
    head.scope = "row";
    access.append(make("span", accessText(s), "badge " + kind));
    row.append(head, access, make("td", count(s.counted), "n"), make("td", q ? count(q.waiting) : "–", "n"), make("td", q ? duration(q.longestSeconds) : "–", "n"));
    return row;
  }));
}

async function explain(id) {
  try {
    const s = await (await ask(`${pathOf(now.key)}/sessions/${encodeURIComponent(id)}`)).json();
    $("found").replaceChildren(...sessionText(s).map((line) => make("p", line)));
    const home = s.backend && now.state.backends.find((b) => b.incarnation === s.backend.incarnation);
    if (home) { now.selected = home.incarnation; show(); $("found").append(make("p", `At ${new Date().toLocaleTimeString("en-GB")} that was ${sentence(home)}.`)); }
  } catch (e) {
    $("found").replaceChildren(make("p", e.problem?.reason === "SessionUnknown" ? `The router knows no session ${id}: it never had a lease, has ended, or was idle for too long.` : e.message));
  }
}

function select(index) {
  const cells = $("strip").children;
  if (!cells.length) return;
  const cell = cells[Math.max(0, Math.min(cells.length - 1, index))];
  now.selected = cell.dataset.incarnation;
  show();
  cell.scrollIntoView({ block: "nearest" });
}

$("strip").addEventListener("keydown", (e) => {
  const cells = [...$("strip").children], at = cells.findIndex((c) => c.dataset.incarnation === now.selected);
  const row = cells.filter((c) => c.offsetTop === cells[0]?.offsetTop).length;
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at < 0 ? 0 : at + row, ArrowUp: at - row, Home: 0, End: cells.length - 1 }[e.key];
  if (e.key === "Escape") { now.selected = ""; show(); }
  if (to !== undefined) { e.preventDefault(); select(to); }
});
$("strip").addEventListener("click", (e) => { const cell = e.target.closest(".cell"); if (cell) select([...$("strip").children].indexOf(cell)); });
$("order").addEventListener("change", (e) => { now.order = e.target.value; if (now.state) show(); });
$("pool").addEventListener("change", (e) => { location.hash = "#/" + e.target.value; });
addEventListener("hashchange", showPools);
$("find").addEventListener("submit", (e) => { e.preventDefault(); explain($("session").value.trim()); });

function themeIs(name) {
  if (name) document.documentElement.dataset.theme = name; else delete document.documentElement.dataset.theme;
  localStorage.setItem("theme", name);
  put($("theme"), name ? name[0].toUpperCase() + name.slice(1) : "Auto");
  $("theme").setAttribute("aria-label", `Colours: ${name || "as the system"}`);
}
$("theme").addEventListener("click", () => themeIs({ "": "light", light: "dark", dark: "" }[document.documentElement.dataset.theme || ""]));
themeIs(localStorage.getItem("theme") || "");
lookForPools();
