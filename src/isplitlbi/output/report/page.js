"use strict";
// What moves on the page: whose ranking is shown, the slider along the path, the user picker, the table of users, the matrix, two charts.
// Ids come from strangers. They reach the page as text only (textContent, never markup), and charts
// through `plain`, because plotly reads a little markup of its own.
(async () => {
  const find = (id) => document.getElementById(id);
  const study = JSON.parse(find("study").textContent);
  const { items, users, kinds, curves, nouns } = study;
  const nUsers = users.user.length;

  // --- arrays and texts ----------------------------------------------------------------------

  const ARRAYS = { f4: Float32Array, f8: Float64Array, i2: Int16Array, i4: Int32Array, u4: Uint32Array };

  function inflated(base64) {
    const text = atob(base64);
    const raw = new Uint8Array(text.length);
    for (let place = 0; place < raw.length; place++) raw[place] = text.charCodeAt(place);
    return new Response(new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate")));
  }

  const unpack = async ({ type, bytes }) => new ARRAYS[type](await inflated(bytes).arrayBuffer());

  async function unpackAll(record) {
    const entries = Object.entries(record).map(async ([name, value]) => [name, value?.bytes ? await unpack(value) : value]);
    return Object.fromEntries(await Promise.all(entries));
  }

  function spelled(sign) {
    const code = sign.codePointAt(0).toString(16);
    return code.length > 2 ? "\\u" + code.padStart(4, "0") : "\\x" + code.padStart(2, "0");
  }

  // Control, format, surrogates, ends of lines; but not what joins letters of some scripts, or an emoji.
  const unseen = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]|(?![\u200c\u200d])\p{Cf}|(?<![^\x00-\x7f\u200c\u200d])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f\u200c\u200d])/gu;

  /** An id as it can be seen: what is invisible spelled out, and not longer than `most`. */
  function shown(id, most = 80) {
    const text = String(id);
    const signs = [...(/^[\p{Z}\p{C}]*$/u.test(text) ? `'${text.replace(/[^ ]/gu, spelled)}'` : text.replace(unseen, spelled))];
    return signs.length <= most ? signs.join("") : signs.slice(0, most).join("").trimEnd() + "…";
  }

  /** The same for plotly, to which < and & mean something. Marks keep its direction to itself. */
  const plain = (id) => "\u2068" + shown(id, 40).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;") + "\u2069";

  const number = (value, digits = 2) => (value === null ? "–" : value.toFixed(digits));
  const small = (value) => (value === null ? "–" : value < 0.001 ? value.toExponential(0) : value.toFixed(3));
  const percent = (share) => (share < 0.01 ? "less than 1 %" : `${Math.round(100 * share)} %`);
  const counted = (n, unit) => `${n.toLocaleString("en")} ${unit}${n === 1 ? "" : "s"}`;
  const countedUsers = (n) => `${n.toLocaleString("en")} ${n === 1 ? nouns.user : nouns.users}`;
  const nameOf = (kind) => (kind < 0 ? "" : kinds[kind].name);

  /** An element with attributes and children; texts are set as text. */
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  function idElement(id) {
    const element = make("bdi", {}, shown(id));
    if (element.textContent.endsWith("…")) element.title = shown(id, 1000);
    return element;
  }

  // --- whose ranking is shown ----------------------------------------------------------------

  const choices = [...document.getElementsByName("whose")];

  function showBoard(name) {
    for (const part of document.querySelectorAll("[data-board]")) part.hidden = part.dataset.board !== name;
    showNotes();
  }

  /** The page's address may name a ranking: it is chosen, whichever way one came there. */
  function chooseByAddress() {
    const choice = choices.find((each) => `#${each.id}` === location.hash);
    if (!choice) return;
    choice.checked = true;
    showBoard(choice.value);
    find("ranking").scrollIntoView();
  }

  for (const choice of choices)
    choice.addEventListener("change", () => {
      showBoard(choice.value);
      history.replaceState(null, "", `#${choice.id}`);
    });
  addEventListener("hashchange", chooseByAddress);

  // --- tables that do not fit ------------------------------------------------------------------

  /** Under every table that is cut off, how many of its rows are in view, or that there are more columns. */
  function showNotes() {
    for (const region of document.querySelectorAll(".scroll")) {
      const rows = [...region.querySelectorAll("tbody:not([hidden]) > tr")];
      const head = region.querySelector("thead")?.getBoundingClientRect().height ?? 0;
      const { top, bottom } = region.getBoundingClientRect();
      const inView = rows.filter((row) => {
        const place = row.getBoundingClientRect();
        const middle = (place.top + place.bottom) / 2;
        return middle > top + head && middle < bottom;
      }).length;
      const isLong = region.scrollHeight > region.clientHeight + 1;
      const isCut = isLong || region.scrollWidth > region.clientWidth + 1;
      region.classList.toggle("cut", isCut && region.scrollTop + region.clientHeight < region.scrollHeight - 1);
      const ofRows = `${inView.toLocaleString("en")} of ${rows.length.toLocaleString("en")} ${region.dataset.unit}, scroll`;
      const told = isLong ? ofRows : "more columns, scroll";
      const note = region.nextElementSibling;
      note.classList.toggle("sideways", !isLong);
      if (note.hidden === isCut) note.hidden = !isCut;
      if (note.textContent !== told) note.textContent = told;
    }
  }

  function makeNotes() {
    const resized = new ResizeObserver(() => showNotes());
    for (const region of document.querySelectorAll(".scroll")) {
      region.after(make("p", { class: "in-view small", hidden: "" }));
      region.addEventListener("scroll", showNotes, { passive: true });
      resized.observe(region);
      resized.observe(region.firstElementChild);
    }
  }

  // --- everybody's ranking at any time of the path -------------------------------------------

  const path = await unpackAll(study.path);
  const telling = await unpackAll(study.telling);
  const words = JSON.parse(await inflated(study.words).text()); // what users are like, sentence by sentence
  const nDetailed = path.start.length - 1;
  const nSlots = path.coordinate.length;
  for (let place = nSlots; place < path.differences.length; place++) path.differences[place] += path.differences[place - nSlots];

  /** What a user adds to the consensus at a position of the slider, slot by slot. */
  function deviation(user, position) {
    const [begin, end] = [path.start[user], path.start[user + 1]];
    if (position === path.chosen) return path.at_chosen.subarray(begin, end);
    let after = path.kept.findIndex((kept) => kept >= position);
    if (after < 0) after = path.kept.length - 1;
    const before = Math.max(after - 1, 0);
    const [from, to] = [path.times[path.kept[before]], path.times[path.kept[after]]];
    const share = to > from ? (path.times[position] - from) / (to - from) : 1;
    const own = new Float64Array(end - begin);
    for (let slot = begin; slot < end; slot++)
      own[slot - begin] = path.step * ((1 - share) * path.differences[before * nSlots + slot] + share * path.differences[after * nSlots + slot]);
    return own;
  }

  const hasTies = path.ties !== "none";
  const consensusAt = (position) => path.consensus.subarray(position * path.width, (position + 1) * path.width);
  const scoresOf = (own) => own.subarray(0, path.n_items);

  /** All that is a user's own, and which of it has a number of the user's own; scores tell the sharpness. */
  function ownAt(user, position) {
    const own = Float64Array.from(consensusAt(position));
    const compared = new Uint8Array(path.width);
    const added = deviation(user, position);
    for (let place = 0; place < added.length; place++) {
      const coordinate = path.coordinate[path.start[user] + place];
      own[coordinate] += added[place];
      compared[coordinate] = 1;
    }
    if (path.reference) for (let item = 0; item < path.n_items; item++) own[item] += own[path.sharpness] * path.reference[item];
    return { own, compared };
  }

  function distance(user, position) {
    const added = deviation(user, position);
    const begin = path.start[user];
    let slope = 0;
    if (path.reference) for (let place = 0; place < added.length; place++) if (path.coordinate[begin + place] === path.sharpness) slope = added[place];
    let square = 0;
    for (let place = 0; place < added.length; place++) {
      const item = path.coordinate[begin + place];
      if (item < path.n_items) square += (added[place] + (slope ? slope * path.reference[item] : 0)) ** 2; // items only
    }
    return Math.sqrt(square);
  }

  /** By which factor an item changes the threshold of its pairs. */
  const habitOf = (own, item) => (path.habits === null ? 1 : Math.exp(own[path.habits + item]));

  /** Items from best to worst; a tier starts at its best item and ends before the first that does not tie with it. */
  function ranked(own) {
    const order = Array.from(items.keys()).sort((a, b) => own[b] - own[a] || a - b);
    if (!hasTies) return { order, tiers: null };
    const threshold = path.ties === "log" ? Math.exp(own[path.threshold]) : own[path.threshold];
    let [tier, best] = [0, null];
    const tiers = order.map((item) => {
      if (best === null || own[best] - own[item] > threshold * habitOf(own, best) * habitOf(own, item)) [tier, best] = [tier + 1, item];
      return tier;
    });
    return { order, tiers };
  }

  // --- what is looked at now -----------------------------------------------------------------

  const hasPath = find("time") !== null;
  const hasUsers = find("user") !== null; // an anonymous crowd has none
  const state = { position: path.chosen, user: 0, scoring: "log_loss" };
  const hasLeft = (user, time) => users.entry_time[user] !== null && users.entry_time[user] <= time;

  // --- charts --------------------------------------------------------------------------------

  const coarse = matchMedia("(pointer: coarse)").matches;
  const dark = matchMedia("screen and (prefers-color-scheme: dark)");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  /** A kind's colour, lighter on a dark page. */
  function kindColour(kind) {
    if (kind < 0) return dark.matches ? "#7a8593" : "#9aa5b2";
    const channels = [1, 3, 5].map((place) => parseInt(kinds[kind].colour.slice(place, place + 2), 16));
    return `rgb(${channels.map((channel) => Math.round(dark.matches ? 0.55 * channel + 0.45 * 255 : channel)).join()})`;
  }

  function line(time, look) {
    return { type: "line", x0: time, x1: time, yref: "paper", y0: 0, y1: 1, line: { width: 1.5, ...look } };
  }
  const timeLines = () => [
    line(path.times[path.chosen], { color: colour("--soft"), dash: "dash" }),
    line(path.times[state.position], { color: colour("--accent") }),
  ];

  /** Round numbers between two, as many as a chart has room for: 0.1, 0.2, 0.5, 1, 2 and so on. */
  function logTicks(low, high, most) {
    for (const steps of [[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 5], [1]]) {
      const ticks = [];
      for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
        ticks.push(...steps.map((step) => Number(`${step}e${power}`)).filter((tick) => tick >= low && tick <= high));
      if ((ticks.length <= most && (steps.length < 9 || ticks.length <= 4)) || steps.length === 1) return ticks;
    }
  }

  /** Label the time axis of a chart anew for what it shows, such as after zooming. */
  function labelTimes(chart) {
    const [low, high] = chart._fullLayout.xaxis.range.map((power) => 10 ** power);
    const ticks = logTicks(low, high, Math.max(4, chart.clientWidth / 55));
    Plotly.relayout(chart, { "xaxis.tickvals": ticks, "xaxis.ticktext": ticks.map(String) });
  }

  function layout(yTitle, shapes) {
    const axis = { gridcolor: colour("--line"), linecolor: colour("--line"), zeroline: false, automargin: true };
    return {
      font: { color: colour("--ink"), family: getComputedStyle(document.body).fontFamily, size: 13 },
      paper_bgcolor: "transparent", plot_bgcolor: "transparent",
      margin: { l: 50, r: 12, t: 10, b: 45 },
      xaxis: { ...axis, type: "log", title: { text: "time on the path" } },
      yaxis: { ...axis, title: { text: yTitle } },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
      hovermode: "closest", hoverlabel: { bgcolor: colour("--paper"), bordercolor: colour("--line"), font: { color: colour("--ink") } },
      dragmode: coarse ? false : "zoom", // a finger scrolls the page
      shapes,
    };
  }
  const config = {
    responsive: true, displaylogo: false, displayModeBar: coarse ? false : "hover", modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    showSendToCloud: false, plotlyServerURL: "", // nothing leaves this page
  };

  // Lines of at most so many users; the others are drawn as a band.
  const MOST_LINES = 400;
  const lined = Array.from({ length: nDetailed }, (_, user) => user)
    .sort((a, b) => users.abnormal[b] - users.abnormal[a] || a - b)
    .slice(0, MOST_LINES);
  const keptTimes = path.kept.map((position) => path.times[position]);
  const heights = new Map();

  function heightsOf(user) {
    if (!heights.has(user)) heights.set(user, path.kept.map((position) => distance(user, position)));
    return heights.get(user);
  }

  function hover(user) {
    const kind = nameOf(users.kind[user]) || "not abnormal";
    return `${plain(users.user[user])}<br>${kind}, ${counted(users.votes[user], "vote")}`;
  }

  /** The lines of users of one kind as one trace, with gaps between them. */
  function kindTrace(kind) {
    const trace = { x: [], y: [], hovertext: [], customdata: [], mode: "lines", hoverinfo: "text", line: { color: kindColour(kind), width: 1.4 } };
    const members = lined.filter((user) => users.kind[user] === kind);
    for (const user of members) {
      trace.x.push(...keptTimes, null);
      trace.y.push(...heightsOf(user), null);
      trace.hovertext.push(...keptTimes.map(() => hover(user)), "");
      trace.customdata.push(...keptTimes.map(() => user), null);
    }
    trace.opacity = kind < 0 ? 0.65 : 1;
    return trace;
  }

  /** A ring where each of them leaves the consensus. */
  function entryTrace(kind) {
    const [first, last] = [path.times[0], path.times[path.times.length - 1]];
    const members = lined.filter((user) => users.kind[user] === kind && users.entry_time[user] >= first && hasLeft(user, last));
    return {
      x: members.map((user) => users.entry_time[user]), y: members.map((user) => between(keptTimes, heightsOf(user), users.entry_time[user])),
      customdata: members, hovertext: members.map((user) => `${hover(user)}<br>leaves the consensus`), hoverinfo: "text",
      mode: "markers", marker: { size: 7, color: colour("--paper"), line: { color: kindColour(kind), width: 1.5 } },
    };
  }

  function between(xs, ys, x) {
    const after = Math.max(xs.findIndex((each) => each >= x), 1);
    if (xs.length < 2) return ys[0];
    const share = (x - xs[after - 1]) / (xs[after] - xs[after - 1]);
    return ys[after - 1] + share * (ys[after] - ys[after - 1]);
  }

  /** Everybody who has no line of their own: the middle 80 % of them. */
  function bandTraces() {
    const rest = nDetailed - lined.length;
    if (rest <= 0) return [];
    const own = new Set(lined);
    const others = Array.from({ length: nDetailed }, (_, user) => user).filter((user) => !own.has(user));
    const quantiles = path.kept.map((position) => {
      const sorted = Float64Array.from(others, (user) => distance(user, position)).sort();
      return [0.1, 0.5, 0.9].map((share) => sorted[Math.min(Math.floor(share * sorted.length), sorted.length - 1)]);
    });
    const trace = (which, more) => ({ x: keptTimes, y: quantiles.map((row) => row[which]), mode: "lines", hoverinfo: "skip", line: { color: kindColour(-1), width: 0 }, ...more });
    return [
      trace(0, {}),
      trace(2, { fill: "tonexty", fillcolor: "rgba(128,140,155,0.3)" }),
      trace(1, { line: { color: kindColour(-1), width: 1.5, dash: "dot" } }),
    ];
  }

  function pickedTrace() {
    const held = state.user < nDetailed;
    return {
      x: held ? keptTimes : [], y: held ? heightsOf(state.user) : [], mode: "lines", line: { color: colour("--ink"), width: 3.5 }, opacity: 0.85,
      hovertext: hover(state.user), hoverinfo: "text",
    };
  }

  function showLegend(present) {
    const count = (kind) => users.kind.filter((each) => each === kind).length.toLocaleString("en");
    const rest = nDetailed - lined.length;
    find("path-legend").replaceChildren(
      ...present.map((kind) => make("li", {}, swatch(kind), `${nameOf(kind) || "not abnormal"} (${count(kind)})`)),
      ...(rest > 0 ? [make("li", {}, `grey band: the middle 80 % of ${rest.toLocaleString("en")} ${nouns.users} without a line`)] : []),
    );
  }

  let pickedPlace = 0;
  let drawing = null; // until the charts are there

  function drawPath() {
    if (!hasPath) return;
    const present = [-1, ...kinds.keys()].filter((kind) => lined.some((user) => users.kind[user] === kind));
    const traces = [...bandTraces(), ...present.map(kindTrace), ...present.map(entryTrace), pickedTrace()];
    pickedPlace = traces.length - 1;
    const look = { ...layout("distance to the consensus", timeLines()), showlegend: false };
    drawing = Plotly.react(find("path-chart"), traces, look, config);
    labelTimes(find("path-chart"));
    showLegend(present);
    find("path-caption").textContent =
      `Every ${nouns.user} has a line; the thick line is the ${nouns.user} picked below. A ring shows where a line leaves the consensus. The dashed line is the chosen time. Click a line to pick its ${nouns.user}.` +
      (nDetailed < nUsers ? ` This file holds the rankings of ${nDetailed.toLocaleString("en")} of ${countedUsers(nUsers)}: those on a list, then those who leave first.` : "");
  }

  function drawCurves() {
    if (!curves) return;
    const estimates = [["dense", "with all deviations", "#2b7bc9"], ["sparse", `with those of ${nouns.users} who left`, "#d9762b"]];
    const traces = estimates.flatMap(([estimate, name, ink]) => {
      const { mean, spread } = curves[`${state.scoring} ${estimate}`];
      const shared = { x: curves.times, mode: "lines", legendgroup: estimate };
      return [
        { ...shared, y: mean.map((value, place) => value - spread[place]), line: { width: 0 }, showlegend: false, hoverinfo: "skip" },
        { ...shared, y: mean.map((value, place) => value + spread[place]), line: { width: 0 }, showlegend: false, hoverinfo: "skip", fill: "tonexty", fillcolor: ink + "2e" },
        { ...shared, y: mean, name, line: { color: ink, width: 2 }, hovertemplate: "%{y:.4f} at t = %{x:.3g}<extra></extra>" },
      ];
    });
    const name = find("scoring").selectedOptions[0].textContent;
    Plotly.react(find("curves-chart"), traces, layout(`held-out ${name}`, [line(curves.time, { color: colour("--soft"), dash: "dash" })]), config);
    labelTimes(find("curves-chart"));
    const at = curves.times.reduce((best, time, place) => (Math.abs(time - curves.time) < Math.abs(curves.times[best] - curves.time) ? place : best), 0);
    const { mean, spread } = curves[`${state.scoring} dense`];
    find("curves-caption").textContent = `At the chosen time (dashed), ${name} is ${mean[at].toFixed(3)}, plus or minus ${spread[at].toFixed(3)}.`;
  }

  // --- the slider ----------------------------------------------------------------------------

  function showTime() {
    if (!hasPath) return;
    const time = path.times[state.position];
    const out = Array.from(users.user.keys()).filter((user) => hasLeft(user, time));
    const at = state.position === path.chosen ? ", the chosen time" : "";
    const told = `At t = ${Number(time.toPrecision(3))}${at}: ${out.length.toLocaleString("en")} of ${countedUsers(nUsers)} ${out.length === 1 || nUsers === 1 ? "has" : "have"} left the consensus.`;
    find("time").value = state.position;
    find("time").setAttribute("aria-valuetext", told);
    find("time-told").textContent = told;
    find("time-chosen").disabled = state.position === path.chosen;
    const latest = out.sort((a, b) => users.entry_rank[b] - users.entry_rank[a]).slice(0, 12);
    find("leavers").replaceChildren(
      ...(latest.length ? [out.length > latest.length ? "The latest to leave: " : "Outside, the latest first: "] : []),
      ...latest.flatMap((user) => [pickButton(user), " "]),
    );
    if (find("path-chart").data) Plotly.relayout(find("path-chart"), { shapes: timeLines() });
  }

  function pickButton(user) {
    const button = make("button", { type: "button", class: "pick" }, swatch(users.kind[user]), idElement(users.user[user]));
    button.addEventListener("click", () => pick(user, true));
    return button;
  }

  function swatch(kind) {
    const square = make("span", { class: "swatch", "aria-hidden": "true" });
    square.style.backgroundColor = kindColour(kind);
    return square;
  }

  // --- one user ------------------------------------------------------------------------------

  const MOST_OPTIONS = 200;

  function showOptions() {
    const wanted = find("search").value.trim().toLowerCase();
    const found = [];
    let matches = 0;
    for (let user = 0; user < nUsers; user++) {
      const text = `${users.user[user]} ${users.list[user] ?? ""} ${nameOf(users.kind[user])}`.toLowerCase();
      if (!text.includes(wanted)) continue;
      matches++;
      if (found.length < MOST_OPTIONS || user === state.user) found.push(user);
    }
    find("pick").replaceChildren(
      ...found.map((user) => {
        const kind = nameOf(users.kind[user]);
        const option = make("option", { value: user }, `\u2068${shown(users.user[user], 40)}\u2069${kind ? ` – ${kind}` : ""}`);
        option.selected = user === state.user;
        return option;
      }),
    );
    find("pick-told").textContent =
      matches > found.length ? `${found.length} of ${countedUsers(matches)} listed; search to narrow them down.` : `${countedUsers(matches)} found.`;
  }

  function tieWords(share) {
    const common = study.consensus_tie_share;
    const ratio = (share + 1e-9) / (common + 1e-9);
    const ready = ratio > 1.5 ? "much readier than the consensus to call a tie" : ratio > 1.15 ? "readier than the consensus to call a tie"
      : ratio < 0.5 ? "hardly ever calls a tie" : ratio < 0.87 ? "less ready than the consensus to call a tie" : "calls ties about as readily as the consensus";
    return `${ready}: two equally good ${nouns.items} are a tie in ${percent(share)} of votes (consensus: ${percent(common)})`;
  }

  function qualityWords(quality) {
    if (quality === null) return "unknown: no votes";
    const word = quality > 0.8 ? "careful" : quality > 0.5 ? "mostly careful" : quality > 0.2 ? "doubtful" : `votes tell little about the ${nouns.items}`;
    return `${quality.toFixed(2)} of 1, ${word}`;
  }

  function effectWords(user, to = "–") {
    if (users.effect[user] === null) return "–";
    return `${number(users.effect[user])} (${number(users.effect_low[user])}${to}${number(users.effect_high[user])})`;
  }

  /** How likely it is by chance; a p-value that no draw has exceeded is a bound. */
  function chanceWords(user) {
    const p = users.p_value[user];
    if (p === null) return "nothing can be said";
    return `q = ${small(users.q_value[user])} (p ${users.is_bound[user] ? `< ${small(p / (1 - p))}` : `= ${small(p)}`})`;
  }

  function fact(name, value) {
    return make("div", {}, make("dt", {}, name), make("dd", {}, value));
  }

  function showUser() {
    const user = state.user;
    const kind = users.kind[user];
    find("who-name").textContent = shown(users.user[user], 200);
    find("who-kind").replaceChildren(swatch(kind), nameOf(kind) || "not abnormal");
    const why = users.explanation[user] ?? "";
    find("who-explanation").textContent = why && `${why[0].toUpperCase()}${why.slice(1)}.`;
    const entry = users.entry_time[user];
    const list = users.list[user];
    find("who-facts").replaceChildren(
      fact("Votes", users.votes[user].toLocaleString("en")),
      fact("List", list === null ? "neither unreliable nor different" : `${list}: ${study.list_words[list]}`),
      fact("Effect", effectWords(user, " to ")),
      fact("Left the consensus", entry === null ? "never" : `as number ${users.entry_rank[user]}, at t = ${Number(entry.toPrecision(3))}`),
      fact("Distance to the consensus", number(users.distance[user])),
      fact("Abnormal by chance?", chanceWords(user)),
      fact("Quality", qualityWords(users.quality[user])),
      ...(hasTies && !words.length ? [make("div", { class: "whole" }, make("dt", {}, "Ties"), make("dd", {}, tieWords(users.tie_share[user])))] : []),
    );
    find("who-words").replaceChildren(...(words[user] ?? []).map((sentence) => make("li", {}, sentence)));
    showOwnRanking();
    const against = tellingVotes(user);
    find("telling-none").hidden = against.length > 0;
    find("telling").replaceChildren(
      ...against.map(({ winner, loser, tie, times, probability }) => {
        const again = times > 1 ? `, said ${times} times` : "";
        return make("li", {}, idElement(items[winner]), tie ? " ties with " : " beats ", idElement(items[loser]), `${again}; the consensus gave this a chance of ${percent(probability)}.`);
      }),
    );
  }

  /** The votes that speak most against the consensus; whichever side an item was on. */
  function tellingVotes(user) {
    const found = new Map();
    for (let vote = telling.start[user]; vote < telling.start[user + 1]; vote++) {
      if (telling.probability[vote] >= 0.5) break; // the least likely stand first
      const tie = telling.outcome[vote] === 0;
      let [winner, loser] = [telling.left[vote], telling.right[vote]];
      if (telling.outcome[vote] < 0 || (tie && winner > loser)) [winner, loser] = [loser, winner];
      const key = `${winner} ${loser} ${tie}`;
      const times = telling.times[vote] + (found.get(key)?.times ?? 0);
      found.set(key, { winner, loser, tie, times, probability: telling.probability[vote] });
    }
    return [...found.values()].slice(0, 5);
  }

  function showOwnRanking() {
    const body = find("own").tBodies[0];
    if (state.user >= nDetailed) {
      body.replaceChildren(make("tr", {}, make("td", { colspan: 5 }, `This file is too large to hold this ${nouns.user}'s ranking; the command isplitlbi rank shows it.`)));
      return;
    }
    const { own, compared } = ownAt(state.user, state.position);
    const common = consensusAt(state.position);
    const { order, tiers } = ranked(own);
    const numbers = tiers ?? order.map((_, rank) => rank + 1);
    const place = new Uint32Array(items.length);
    ranked(common).order.forEach((item, rank) => (place[item] = rank));
    const scores = [...scoresOf(own), ...scoresOf(common)];
    const [least, most] = scores.reduce(([low, high], score) => [Math.min(low, score), Math.max(high, score)], [Infinity, -Infinity]);
    const at = (score) => (100 * (score - least)) / (most - least || 1);
    body.replaceChildren(
      ...order.map((item, rank) => {
        const opens = rank === 0 || numbers[rank] !== numbers[rank - 1];
        const band = tiers === null ? "plain" : `${tiers[rank] % 2 ? "odd" : "even"}${opens ? " opens" : ""}`;
        const row = make("tr", { class: `${band}${compared[item] ? "" : " absent"}` });
        const [here, there] = [at(own[item]), at(common[item])];
        const [bar, ring, dot] = [make("i"), make("s"), make("b")];
        Object.assign(bar.style, { left: `${Math.min(here, there)}%`, width: `${Math.abs(here - there)}%` });
        ring.style.left = `${there}%`;
        dot.style.left = `${here}%`;
        const moved = place[item] - rank;
        const movedCell = moved === 0 ? "–" : make("span", { class: moved > 0 ? "up" : "down" }, `${moved > 0 ? "▲" : "▼"} ${Math.abs(moved)}`);
        row.append(
          make("td", { class: "tier" }, make("span", opens ? {} : { class: "unseen" }, String(numbers[rank]))),
          make("th", { scope: "row", class: "name" }, idElement(items[item]), compared[item] ? "" : make("span", { class: "unseen" }, " (never compared)")),
          make("td", { class: "track", "aria-hidden": "true" }, make("div", {}, bar, ring, dot)),
          make("td", { class: "number" }, number(own[item])),
          make("td", { class: "number" }, movedCell),
        );
        return row;
      }),
    );
    const time = state.position === path.chosen ? "at the chosen time" : `at t = ${Number(path.times[state.position].toPrecision(3))}`;
    find("own-title").textContent = hasPath ? `Own ranking, ${time}` : "Own ranking";
  }

  function pick(user, scroll = false) {
    state.user = user;
    showUser();
    if (![...find("pick").options].some((option) => Number(option.value) === user)) {
      find("search").value = "";
      showOptions();
    }
    const option = [...find("pick").options].find((each) => Number(each.value) === user);
    if (option) option.selected = true;
    drawing?.then(() => {
      const { x, y, hovertext } = pickedTrace();
      Plotly.restyle(find("path-chart"), { x: [x], y: [y], hovertext: [hovertext] }, [pickedPlace]);
    });
    if (!scroll) return;
    find("user").scrollIntoView();
    find("user-title").focus({ preventScroll: true }); // the keyboard goes where the page went
  }

  // --- head to head ----------------------------------------------------------------------------

  const pairs = await unpackAll(study.pairs);
  const nInMatrix = pairs.items.length;
  const pairAt = new Map(Array.from(pairs.first, (first, pair) => [first * nInMatrix + pairs.second[pair], pair]));

  /** How one item fared against another: wins, ties and losses, as they are and as expected. */
  function meeting(row, column) {
    const pair = pairAt.get(Math.min(row, column) * nInMatrix + Math.max(row, column));
    if (pair === undefined) return null;
    const shares = (all) => {
      const found = [...all.subarray(3 * pair, 3 * pair + 3)];
      return row < column ? found : found.reverse();
    };
    return { votes: pairs.votes[pair], observed: shares(pairs.observed), predicted: shares(pairs.predicted) };
  }

  const won = ([wins, ties]) => wins + ties / 2;
  const rounded = (share) => `${Math.round(100 * share)} %`;

  function meetingWords(row, column) {
    const [one, other] = [row, column].map((place) => shown(items[pairs.items[place]], 60));
    const met = row === column ? null : meeting(row, column);
    if (met === null) return row === column ? "Choose two items." : `\u2068${one}\u2069 and \u2068${other}\u2069 were never compared.`;
    const told = ([wins, ties, losses]) => `${rounded(wins)} won, ${hasTies ? `${rounded(ties)} tied, ` : ""}${rounded(losses)} lost`;
    const votes = counted(Number(met.votes.toFixed(1)), "vote");
    return `\u2068${one}\u2069 against \u2068${other}\u2069: ${votes}; ${told(met.observed)}. Expected from people like these: ${told(met.predicted)}.`;
  }

  /** A pair's colour and its number; colours stay pale enough to read on. */
  function paint(cell, met, show, mostVotes) {
    const share = show === "votes" ? 0.5 + met.votes / mostVotes / 2 : won(met[show]);
    const strength = 0.55 * Math.abs(2 * share - 1);
    cell.style.backgroundColor = show === "votes" ? `rgba(120, 130, 145, ${strength})` : share >= 0.5 ? `rgba(33, 102, 172, ${strength})` : `rgba(200, 40, 50, ${strength})`;
    cell.textContent = show === "votes" ? Number(met.votes.toFixed(1)) : Math.round(100 * share);
  }

  function showMatrix() {
    const show = find("pairs-show").value;
    const mostVotes = pairs.votes.reduce((most, votes) => Math.max(most, votes), 1);
    const places = [...pairs.items.keys()];
    find("matrix").tHead.rows[0].replaceChildren(
      make("td"),
      ...places.map((place) => make("th", { scope: "col" }, idElement(items[pairs.items[place]]))),
    );
    find("matrix").tBodies[0].replaceChildren(
      ...places.map((row) =>
        make("tr", {}, make("th", { scope: "row" }, `${row + 1}\u00a0`, idElement(items[pairs.items[row]])), ...places.map((column) => {
          const cell = make("td", { "data-column": column });
          const met = row === column ? null : meeting(row, column);
          if (row === column) cell.className = "same";
          if (met === null) return cell;
          cell.title = meetingWords(row, column);
          paint(cell, met, show, mostVotes);
          return cell;
        })),
      ),
    );
    const all = items.length;
    find("pairs-some").hidden = nInMatrix === all;
    find("pairs-some").textContent = `The first ${nInMatrix} of ${all.toLocaleString("en")}; the command isplitlbi rank --matrix has all pairs.`;
  }

  function makePairs() {
    const options = () => pairs.items.map((item, place) => make("option", { value: place }, `${place + 1} \u2068${shown(items[item], 40)}\u2069`));
    find("pairs-row").append(...options());
    find("pairs-column").append(...options());
    find("pairs-row").value = pairs.first[0];
    find("pairs-column").value = pairs.second[0];
    showMeeting();
    fitMatrix();
    addEventListener("resize", fitMatrix);
  }

  /** Cells are as large as there is room for, never too small for a finger or the eye, and show numbers where these fit. */
  function fitMatrix() {
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const room = (find("matrix").parentElement.clientWidth - 13 * rem) / nInMatrix - 1;
    const size = Math.max((coarse ? 1.1 : 0.8) * rem, Math.min(room, 2.3 * rem));
    find("matrix").style.setProperty("--cell", `${size}px`);
    find("matrix").classList.toggle("numbers", size >= 1.6 * rem);
  }

  function showMeeting() {
    find("pairs-told").textContent = meetingWords(Number(find("pairs-row").value), Number(find("pairs-column").value));
  }

  // --- the table -----------------------------------------------------------------------------

  const COLUMNS = [
    { title: nouns.user[0].toUpperCase() + nouns.user.slice(1), of: (user) => users.user[user], cell: pickButton },
    { title: "List", of: (user) => users.list[user] },
    { title: "Kind", of: (user) => nameOf(users.kind[user]) || null, cell: (user) => (users.kind[user] < 0 ? "–" : make("span", { class: "kind" }, swatch(users.kind[user]), nameOf(users.kind[user]))) },
    { title: "Votes", of: (user) => users.votes[user], digits: 0 },
    { title: "Effect", of: (user) => users.effect[user], cell: (user) => effectWords(user), numeric: true },
    { title: "Left at", of: (user) => users.entry_time[user], digits: 3 },
    { title: "Quality", of: (user) => users.quality[user], digits: 2 },
    { title: "Why", of: (user) => users.explanation[user] ?? null, why: true },
  ];
  const PAGE = 100;
  const sorting = { column: null, sign: 1, rows: PAGE }; // at first list by list, the largest effect first

  function compare(a, b) {
    if (a === null || b === null) return (a === null) - (b === null) || 0;
    return sorting.sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
  }

  function chosenUsers() {
    const [wanted, name] = [find("show-kind").value, find("filter").value.trim().toLowerCase()];
    const fits = (user) =>
      (wanted === "everybody" || (wanted === "abnormal" ? users.abnormal[user] : [users.list[user], nameOf(users.kind[user])].includes(wanted))) &&
      String(users.user[user]).toLowerCase().includes(name);
    const chosen = Array.from(users.user.keys()).filter(fits);
    if (sorting.column === null) return chosen;
    const { of } = COLUMNS[sorting.column];
    return chosen.sort((a, b) => compare(of(a), of(b)) || a - b);
  }

  function showTable() {
    const chosen = chosenUsers();
    const head = find("users").tHead.rows[0];
    [...head.cells].forEach((cell, place) => {
      cell.setAttribute("aria-sort", place !== sorting.column ? "none" : sorting.sign > 0 ? "ascending" : "descending");
    });
    find("users").tBodies[0].replaceChildren(
      ...chosen.slice(0, sorting.rows).map((user) =>
        make("tr", {}, ...COLUMNS.map((column) => {
          const value = column.of(user);
          const content = column.cell ? column.cell(user) : value === null ? "–" : column.digits === undefined ? String(value) : value.toFixed(column.digits);
          return make(...(column === COLUMNS[0] ? ["th", { scope: "row" }] : ["td", { class: classOf(column), "data-label": column.why ? "" : column.title.toLowerCase() }]), content);
        })),
      ),
    );
    find("table-told").textContent = chosen.length > sorting.rows
      ? `${sorting.rows} of ${countedUsers(chosen.length)} shown; the download has them all.` : `${countedUsers(chosen.length)} shown.`;
    find("more").hidden = chosen.length <= sorting.rows;
    showNotes();
  }

  const classOf = (column) => [column.digits !== undefined || column.numeric ? "number" : "", column.why ? "why" : ""].join(" ").trim();

  function makeHead() {
    find("users").tHead.rows[0].append(...COLUMNS.map((column, place) => {
      const button = make("button", { type: "button" }, column.title);
      button.addEventListener("click", () => {
        sorting.sign = sorting.column === place ? -sorting.sign : 1;
        sorting.column = place;
        showTable();
      });
      return make("th", { scope: "col", class: classOf(column) }, button);
    }));
  }

  const CSV = [
    "user", "votes", "entry_time", "entry_rank", "distance", "p_value", "q_value", "abnormal", "kind", "quality", "explanation",
    "list", "effect", "effect_low", "effect_high", "p_unreliable", "q_unreliable",
  ];

  /** A cell of CSV. A spreadsheet would run an id that begins like a formula: a quote stops it. */
  function csvCell(value) {
    if (value === null || value === undefined) return "";
    const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  }

  function download() {
    const valueOf = (name, user) => (name === "kind" ? nameOf(users.kind[user]) : users[name][user]);
    const lines = [CSV, ...chosenUsers().map((user) => CSV.map((name) => valueOf(name, user)))].map((row) => row.map(csvCell).join(","));
    const link = make("a", { download: "users.csv", href: URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" })) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  // --- events --------------------------------------------------------------------------------

  function moveTo(position) {
    state.position = position;
    showTime();
    showOwnRanking();
  }

  find("time")?.addEventListener("input", (event) => moveTo(Number(event.target.value)));
  find("time-chosen")?.addEventListener("click", () => {
    moveTo(path.chosen);
    find("time").focus({ preventScroll: true }); // the button is off now
  });
  find("search")?.addEventListener("input", showOptions);
  find("search")?.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && find("pick").options.length) pick(Number(find("pick").options[0].value));
  });
  find("pick")?.addEventListener("change", (event) => pick(Number(event.target.value)));
  for (const [id, event] of [["show-kind", "change"], ["filter", "input"]])
    find(id)?.addEventListener(event, () => {
      sorting.rows = PAGE;
      showTable();
    });
  find("more")?.addEventListener("click", () => {
    const first = sorting.rows;
    sorting.rows += PAGE;
    showTable();
    find("users").tBodies[0].rows[first].querySelector("button").focus();
  });
  find("download")?.addEventListener("click", download);
  find("pairs-show").addEventListener("change", showMatrix);
  for (const id of ["pairs-row", "pairs-column"]) find(id).addEventListener("change", showMeeting);
  find("matrix").addEventListener("click", ({ target }) => {
    const cell = target.closest("td[data-column]");
    if (!cell) return;
    find("pairs-row").value = cell.parentElement.sectionRowIndex;
    find("pairs-column").value = cell.dataset.column;
    showMeeting();
  });
  find("scoring")?.addEventListener("change", (event) => {
    state.scoring = event.target.value;
    drawCurves();
  });

  function showAll() {
    makeLists();
    showTime();
    showMatrix();
    if (!hasUsers) return;
    showUser();
    showTable();
  }

  function drawCharts() {
    drawPath();
    drawCurves();
  }

  /** Load the charting library, which the page's policy knows by its hash. */
  async function loadCharts() {
    const library = await inflated(find("charts").textContent).text();
    await new Promise((painted) => requestAnimationFrame(() => setTimeout(painted)));
    document.head.append(make("script", {}, library));
  }

  /** In the lists of the page, a user can be picked, and a kind has its colour. */
  function makeLists() {
    for (const cell of document.querySelectorAll("[data-place]")) {
      const user = Number(cell.dataset.place);
      cell.replaceChildren(pickButton(user));
    }
  }

  makeNotes();
  makePairs();
  if (hasUsers) {
    makeHead();
    showOptions();
  }
  showAll();
  chooseByAddress();
  if (hasPath || curves) {
    await loadCharts(); // last, because it takes a moment
    drawCharts();
  }
  find("path-chart")?.on("plotly_click", ({ points }) => {
    const user = points[0].customdata;
    if (Number.isInteger(user)) pick(user, true);
  });
  dark.addEventListener("change", () => {
    showAll();
    if (hasPath || curves) drawCharts();
  });
  // On paper the page has another width.
  const charts = ["path-chart", "curves-chart"].map(find).filter((chart) => chart);
  for (const chart of charts)
    chart.on("plotly_relayout", (changed) => {
      if (Object.keys(changed).some((name) => name.startsWith("xaxis.range") || name === "xaxis.autorange")) labelTimes(chart);
    });
  addEventListener("beforeprint", () => charts.forEach((chart) => Plotly.relayout(chart, { width: 680 })));
  addEventListener("afterprint", () => charts.forEach((chart) => Plotly.relayout(chart, { width: null, autosize: true })));
  document.documentElement.dataset.ready = "yes";
})().catch((error) => {
  document.documentElement.dataset.ready = "no";
  document.getElementById("broken").hidden = false;
  throw error;
});
