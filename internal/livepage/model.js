// What is shown, as functions of what the lease API says. Nothing here touches the document.

const percent = (share) => `${Math.round(share * 100)} %`;
const count = (n) => n.toLocaleString("en-GB");
const plural = (n, one, many = one + "s") => `${count(n)} ${n === 1 ? one : many}`;
const duration = (s) => s < 60 ? `${s.toFixed(s < 10 && s % 1 ? 1 : 0)} s` : s < 3600 ? `${Math.floor(s / 60)} min ${Math.round(s % 60)} s` : `${(s / 3600).toFixed(1)} h`;

// reasons say in words why a backend takes no new sessions.
const reasons = {
  Retired: "left the pool", ProcessEnded: "its engine has ended", Draining: "is draining", EnginePaused: "is paused by the operator",
  EngineUpdating: "is updating its weights", NotProbed: "has not been probed yet", Unhealthy: "is unhealthy",
  SuspectedPaused: "seems paused by somebody else", Refused: "refuses connections", CapacityUnknown: "does not tell its capacity",
  Isolated: "is isolated after an ambiguous execution", Settling: "settles what may still run", VersionUnconfirmed: "has not confirmed its weights",
  VersionStale: "is on other weights",
};
const why = (b) => b.admissible ? "takes new sessions" : b.drained && b.reason === "Draining" ? "is drained" : reasons[b.reason] || b.reason;

const loadOf = (b) => b.capacity > 0 ? b.outstanding / b.capacity : 0;

// levelOf is the class of a cell: load in tenths, or what is beside the scale.
function levelOf(b) {
  if (!b.admissible) return "off";
  const load = loadOf(b);
  return load > 1 ? "over" : `l${Math.floor(load * 10)}`;
}

// summary adds a pool up. The skew is the coefficient of variation of load, as in the metrics.
function summary(pool) {
  const members = pool.backends.filter((b) => !b.retired);
  const open = members.filter((b) => b.admissible && b.capacity > 0);
  const loads = open.map(loadOf);
  const mean = loads.reduce((a, b) => a + b, 0) / (loads.length || 1);
  const variance = loads.reduce((a, l) => a + (l - mean) ** 2, 0) / (loads.length || 1);
  const sum = (list, field) => list.reduce((a, b) => a + b[field], 0);
  return {
    members, open: open.length, outstanding: sum(pool.backends, "outstanding"), held: sum(pool.backends, "held"),
    capacity: sum(members, "capacity"), min: loads.length ? Math.min(...loads) : 0, max: loads.length ? Math.max(...loads) : 0,
    mean, skew: mean > 0 ? Math.sqrt(variance) / mean : 0, unknown: pool.backends.filter((b) => b.unknownLoad).length,
    longest: Math.max(0, ...pool.queues.map((q) => q.longestSeconds)),
  };
}

// versions groups the members by what they are confirmed on, against what they should be on.
function versions(pool) {
  const wanted = pool.targetVersion || pool.publishedVersion;
  const groups = new Map();
  for (const b of pool.backends) {
    if (b.retired) continue;
    groups.set(b.weightVersion, [...(groups.get(b.weightVersion) || []), b.name]);
  }
  const role = (v) => v === "" ? "none" : v === pool.publishedVersion ? "now" : v === pool.targetVersion ? "next" : wanted === "" ? "now" : "old";
  const label = { none: "unconfirmed", now: "published", next: "target", old: "neither published nor target" };
  return {
    wanted, total: pool.backends.filter((b) => !b.retired).length, done: wanted ? (groups.get(wanted) || []).length : 0,
    groups: [...groups].map(([version, names]) => ({ version, names, role: role(version), label: wanted ? label[role(version)] : version ? "not looked at" : "unconfirmed" }))
      .sort((a, b) => b.names.length - a.names.length),
  };
}

function rolloutText(pool, v) {
  if (!v.wanted) return "No version is published: every engine serves as it is.";
  if (pool.targetVersion && pool.targetVersion !== pool.publishedVersion) {
    return `Rolling out ${pool.targetVersion}: ${v.done} of ${v.total} backends are on it, ${pool.publishedVersion || "no version"} is published.`;
  }
  return v.done === v.total ? `All ${plural(v.total, "backend")} on ${v.wanted}.` : `${v.done} of ${v.total} backends on ${v.wanted}.`;
}

// accessText is a sender's access; a fence is complete only once nothing of it runs.
const accessText = (s) => s.access === "Open" ? "Open" : s.fenced ? "Fenced" : "Fencing: waits for what runs";

// lives finds a backend's life again in the next state.
const lives = (pool) => new Map(pool.backends.map((b) => [b.incarnation, b]));

// changes tells what figures and states say between two looks, beyond the events of the stream.
function changes(before, after) {
  const out = [];
  if (after.term > before.term) out.push(termText(after.term));
  const was = lives(before);
  const told = [];
  for (const b of after.backends) {
    const old = was.get(b.incarnation);
    if (!old) told.push(joinedText(b.name));
    else if (old.reason !== b.reason || old.drained !== b.drained) {
      if (b.reason === "Settling" || old.reason === "Settling") continue; // comes and goes by itself
      told.push(b.admissible ? openedText(b.name) : closedText(b.name, b));
    }
  }
  const most = 12;
  return out.concat(told.length > most ? [manyText(told.length)] : told);
}

// eventText says an event of the watch stream in words.
function eventText(e) {
  switch (e.type) {
    case "EpochRaised": return ["warn", `Epoch ${e.epoch}: every earlier lease and session has ended.`];
    case "VersionPublished": return ["good", e.publishedVersion ? `Version ${e.publishedVersion} is published.` : "No version is published any more."];
    case "Held": return ["warn", "Leasing is held, and nothing runs any more."];
    case "Opened": return ["good", e.sender ? `Sender ${e.sender} is open.` : "Leasing is open."];
    case "Fenced": return ["warn", `Sender ${e.sender} is fenced, and none of its executions runs.`];
    case "Failed": return ["bad", failureText(e.failure)];
    case "BackendGone": return ["warn", `${e.backend.name} is gone, and nothing is counted there.`];
    case "PoolGone": return ["bad", "The pool is gone."];
  }
  return ["", e.type];
}

// recentText says in words what the router remembers, in those of what is seen as it happens.
function recentText(h) {
  switch (h.type) {
    case "TermBegan": return termText(h.term);
    case "BackendJoined": return joinedText(h.backend.name);
    case "BackendOpened": return openedText(h.backend.name);
    case "BackendClosed": return closedText(h.backend.name, { admissible: false, drained: h.reason === "Drained", reason: h.reason === "Drained" ? "Draining" : h.reason });
    case "BackendsChanged": return manyText(h.count);
  }
  return eventText(h);
}

const termText = (term) => term > 1 ? ["warn", `Another router took over: term ${term}.`] : ["good", "A router leads the pool: term 1."];
const joinedText = (name) => ["good", `${name} joined: a new engine process.`];
const openedText = (name) => ["good", `${name} takes new sessions again.`];
// planned are the reasons that somebody asked for, or that pass by themselves; the others are for a person to look at.
const planned = new Set(["Retired", "Draining", "EnginePaused", "EngineUpdating", "NotProbed", "Settling", "VersionUnconfirmed", "VersionStale"]);
const closedText = (name, b) => [planned.has(b.reason) ? "warn" : "bad", `${name} ${why(b)}.`];
const manyText = (n) => ["warn", `${plural(n, "backend")} changed at once.`];

const failureText = (f) => `The pool has failed: request ${f.requestID} of session ${f.sessionID} on ${f.backend} could not be proven dead. Raising spec.epoch is the one way back.`;

// placements explain each word of the router.
const placements = {
  Placed: "had the least load per capacity", LastBackend: "was where its client said it had been before", Adopted: "was known from a lease of an earlier term",
  Group: "held sessions of the same group", Rebalanced: "was behind its home in tokens served by more than the move costs",
};

const scoreText = (s) => `${s.outstanding} of ${s.capacity} executions (${s.capacity ? percent(s.outstanding / s.capacity) : "–"}), ${plural(s.sessions, "session")}`;

// sessionText explains a placement in sentences.
function sessionText(s) {
  if (!s.backend) return [`${s.sessionID} of sender ${s.sender} has no home now; its next turn is placed anew.`];
  const lines = [`${s.sessionID} of sender ${s.sender} lives on ${s.backend.name} and has ${plural(s.activeLeases, "active lease")}.`];
  const c = s.choice;
  if (!c.why) return lines;
  const among = c.candidates > 0 ? ` Of ${plural(c.candidates, "backend")} that took new sessions, it` : " It";
  lines.push(`${c.chosen.backend || s.backend.name} was chosen.${among} ${placements[c.why] || c.why}: ${scoreText(c.chosen)} at that moment.`);
  if (c.runnerUp) lines.push(`Next best was ${c.runnerUp.backend}: ${scoreText(c.runnerUp)}.`);
  return lines;
}

// prefixOf is what all names begin with, up to the last dash, so that cells can leave it out.
function prefixOf(names) {
  if (names.length < 2) return "";
  let prefix = names[0];
  for (const name of names) while (!name.startsWith(prefix)) prefix = prefix.slice(0, -1);
  return prefix.slice(0, prefix.lastIndexOf("-") + 1);
}

// readEvents takes complete server-sent events off a text; rest is what is not complete yet.
function readEvents(text) {
  const blocks = text.replaceAll("\r\n", "\n").split("\n\n");
  const rest = blocks.pop();
  const events = [];
  for (const block of blocks) {
    const e = { id: "", data: "" };
    for (const line of block.split("\n")) {
      const at = line.indexOf(": ");
      if (line.startsWith("data: ")) e.data += line.slice(at + 2);
      if (line.startsWith("id: ")) e.id = line.slice(at + 2);
    }
    if (e.data) events.push(e);
  }
  return { events, rest };
}
