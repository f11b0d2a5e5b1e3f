"use strict";
// What the server cannot do: local times, ages that tick, the chart, the dialog, keys, links to Airflow.

const framed = window.parent !== window;
const $ = (id) => document.getElementById(id);
const bytes = (value) => {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (Math.abs(value) >= 999.5 && unit < units.length - 1) { value /= 1000; unit += 1; }
  return `${unit ? Number(value.toPrecision(3)) : Math.round(value)} ${units[unit]}/s`;
};

// Times: in the viewer's zone, the UTC as a tooltip; the day only where it is another one.
const localTimes = (root) => {
  for (const element of root.querySelectorAll("time[datetime]:not([data-local])")) {
    const at = new Date(element.dateTime);
    const today = at.toDateString() === new Date().toDateString();
    const day = today ? {} : { month: "short", day: "numeric" };
    element.textContent = at.toLocaleString(undefined, { ...day, hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
    element.dataset.local = "";
  }
};

// Ages: how long ago the last poll was, by the server's clock; amber after 3 polls, red after 10.
let ahead = null;
const tick = () => {
  for (const element of document.querySelectorAll(".age[data-at]")) {
    const now = Number(element.dataset.now);
    if (element.dataset.clock !== element.dataset.now) {
      ahead = now - Date.now() / 1000;
      element.dataset.clock = element.dataset.now;
    }
    const age = Math.max(0, Date.now() / 1000 + ahead - Number(element.dataset.at));
    const polls = age / Number(element.dataset.poll);
    element.textContent = age < 90 ? `seen ${Math.round(age)} s ago` : `seen ${Math.round(age / 60)} min ago`;
    element.classList.toggle("old", polls > 3 && polls <= 10);
    element.classList.toggle("dead", polls > 10);
  }
};

// The chart: what was delivered, what was to be, and what was asked for.
const clock = (_, ticks, __, ___, step) => ticks.map((tick) => {
  const at = new Date(tick * 1000);
  const seconds = step < 60 ? { second: "2-digit" } : {};
  if (step >= 86400) return at.toLocaleDateString(undefined, { month: "short", day: "numeric" });
  return at.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", ...seconds, hourCycle: "h23" });
});
let chart = null;
let columns = null;
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const draw = () => {
  const place = $("throughput");
  if (!place || !columns) return;
  if (columns.at.length < 2) {
    place.textContent = "There is no chart yet: it takes two polls.";
    place.classList.add("quiet");
    return;
  }
  place.classList.remove("quiet");
  place.classList.add("drawn");
  const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") }, font: "12px system-ui, sans-serif" };
  const stepped = uPlot.paths.stepped({ align: 1 });
  const options = {
    width: place.clientWidth,
    height: 240,
    cursor: { y: false },
    scales: { y: { range: (_, __, most) => [0, Math.max(most * 1.12, 1)] } },
    axes: [{ ...axis, values: clock }, { ...axis, size: 74, values: (_, ticks) => ticks.map((tick) => (tick ? bytes(tick) : "0")) }],
    series: [
      { value: (_, at) => (at == null ? "–" : new Date(at * 1000).toLocaleTimeString(undefined, { hourCycle: "h23" })) },
      { label: "delivered", stroke: colour("--accent"), width: 2, fill: colour("--soft"), spanGaps: false, value: (_, v) => (v == null ? "–" : bytes(v)), points: { show: false } },
      { label: "to deliver", stroke: colour("--ink"), width: 1.5, paths: stepped, value: (_, v) => (v == null ? "–" : bytes(v)), points: { show: false } },
      { label: "asked for", stroke: colour("--busy"), width: 1.5, dash: [6, 4], paths: stepped, value: (_, v) => (v == null ? "–" : bytes(v)), points: { show: false } },
    ],
    hooks: { draw: [marks], setCursor: [explain] },
  };
  const data = [columns.at, columns.delivered, columns.target, columns.limit];
  if (chart) chart.destroy();
  place.textContent = "";
  chart = new uPlot(options, data, place);
};
const marks = (plot) => {
  // A tick at the bottom for each change; its cause is shown below while the cursor is near it.
  const context = plot.ctx;
  context.save();
  context.strokeStyle = colour("--busy");
  context.lineWidth = 2 * devicePixelRatio;
  for (const change of columns.changes) {
    const x = plot.valToPos(change.at, "x", true);
    context.beginPath();
    context.moveTo(x, plot.bbox.top + plot.bbox.height);
    context.lineTo(x, plot.bbox.top + plot.bbox.height - 9 * devicePixelRatio);
    context.stroke();
  }
  context.restore();
};
const explain = (plot) => {
  const place = $("throughput");
  let cause = place.querySelector(".cause");
  if (!cause) {
    cause = document.createElement("p");
    cause.className = "cause small quiet";
    place.append(cause);
  }
  const at = plot.cursor.left >= 0 ? plot.posToVal(plot.cursor.left, "x") : null;
  const before = at === null ? [] : columns.changes.filter((change) => change.at <= at);
  const last = before[before.length - 1];
  cause.textContent = last ? `${last.reason}: ${last.cause}` : " ";
};
let asking = false;
const refresh = async () => {
  const place = $("throughput");
  if (!place || asking) return;
  asking = true;
  try {
    const answer = await fetch(place.dataset.url, { headers: { Accept: "application/json" } });
    if (answer.ok) { columns = await answer.json(); draw(); }
  } finally {
    asking = false;
  }
};

// The dialog: opened with what was asked for, closed by Escape, by its button, or by success.
const dialog = $("dialog");
document.addEventListener("click", (event) => {
  const target = event.target.closest("[data-close], [data-airflow], tr[data-href], a");
  if (!target) return;
  if (target.matches("[data-close]")) return dialog.close();
  if (target.matches("a[data-airflow]") && framed) {
    // A sandboxed frame may not navigate its parent; a link in the parent may.
    event.preventDefault();
    const link = window.parent.document.createElement("a");
    link.href = target.href;
    window.parent.document.body.append(link);
    link.click();
    link.remove();
    return;
  }
  if (target.matches("tr[data-href]")) window.location.assign(target.dataset.href);
});

// Keys: / searches, j and k go through rows, Enter opens one.
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
  if (event.key === "/") {
    const search = document.querySelector("input[type=search]");
    if (search) { event.preventDefault(); search.focus(); }
  } else if (event.key === "j" || event.key === "k") {
    const rows = [...document.querySelectorAll("tr.row")];
    const now = rows.findIndex((row) => row.classList.contains("current"));
    const next = rows[Math.min(rows.length - 1, Math.max(0, now + (event.key === "j" ? 1 : -1)))];
    rows[now]?.classList.remove("current");
    next?.classList.add("current");
    (next?.querySelector("a") ?? next)?.focus();
    next?.scrollIntoView({ block: "nearest" });
  }
});

// Screen readers hear of changes of state only.
let state = null;
const say = () => {
  const now = document.querySelector("#plan-head .state")?.textContent.trim().replace(/\s+/g, " ") ?? null;
  if (state !== null && now !== state) $("said").textContent = now;
  state = now;
  // What a plan offers while it is only planned gives way to what it does.
  if (document.querySelector(".choose") && !document.querySelector("#plan-head .state.planned")) window.location.reload();
};

const afterChange = (root) => { localTimes(root); tick(); };
document.addEventListener("htmx:afterSettle", (event) => {
  afterChange(document);
  if (event.detail.target?.id === "dialog-body" && !dialog.open) dialog.showModal();
  if (event.detail.target?.id === "main") { columns = null; chart = null; refresh(); }
});
document.addEventListener("htmx:sseMessage", (event) => {
  afterChange(document);
  if (event.detail.type === "plan") { say(); refresh(); }
});
window.addEventListener("rehome-theme", draw);
window.addEventListener("resize", () => chart?.setSize({ width: $("throughput").clientWidth, height: 240 }));
afterChange(document);
say();
setInterval(tick, 1000);
refresh();
