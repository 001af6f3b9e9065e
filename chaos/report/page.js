'use strict';
// Times in the data are microseconds from the start of the run.
const data = JSON.parse(document.getElementById('data').textContent);
const rep = data.report;
const $ = id => document.getElementById(id);
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const OUTCOMES = ['pending', 'acquired', 'held', 'no-quorum', 'expired', 'cancelled', 'error'];
const KINDS = ['plain', 'fenced', 'shared', 'exclusive', 'reentrant'];
const HUES = ['#3b74d1', '#d1792b', '#2f9c77', '#b04fa8', '#a08a1e', '#c94f5d', '#5d6bd6', '#4fa3b5', '#8a6a4f', '#7fa03a'];
const hue = client => HUES[client % HUES.length];
// One attempt: [client, key, kind, call, return, outcome, end, until, token, id, owner]
const [CLIENT, KEY, KIND, CALL, RETURN, OUTCOME, END, UNTIL, TOKEN, ID, OWNER] = Array(11).keys();

function el(tag, text, cls) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (cls) e.className = cls;
  return e;
}
function time(us) {
  if (us >= 1e6) return (us / 1e6).toFixed(3) + ' s';
  if (us >= 1e3) return (us / 1e3).toFixed(2) + ' ms';
  return Math.round(us) + ' µs';
}
const round = (x, n) => Number(x.toFixed(n)).toString();

// --- the words ---
document.title = rep.verdict + ': ' + rep.subject + ' in ' + rep.scenario;
$('verdict').textContent = rep.verdict;
$('verdict').classList.add(rep.verdict);
$('title').textContent = rep.subject + ' in ' + rep.scenario;
$('what').textContent = rep.text + ' ' + (rep.inside_assumptions ? 'Within what a lock assumes.' : 'Outside what a lock assumes.') +
  ' Workload ' + rep.workload + ', ' + rep.masters + ' masters (' + rep.backend + '), ' + rep.clients + ' clients, ' +
  round(rep.duration_ms / 1000, 1) + ' s, ' + new Date(rep.started).toLocaleString() + '.';
if (rep.reasons) {
  const list = el('ul');
  rep.reasons.forEach(r => list.append(el('li', r)));
  $('reasons').append(list);
}
function card(value, label, cls) {
  const c = el('div', undefined, 'card ' + (cls || ''));
  c.append(el('b', value), el('span', label));
  $('cards').append(c);
}
const must = n => n ? (rep.inside_assumptions ? 'bad' : '') : 'good';
card(rep.operations.toLocaleString(), 'operations');
card(rep.acquisitions.toLocaleString(), 'acquisitions');
card(rep.overlaps, 'overlapping holds', must(rep.overlaps));
card(rep.token_violations, 'tokens out of order', rep.token_violations ? 'bad' : 'good');
card(rep.orphans, 'orphans', must(rep.orphans));
card(rep.goroutines_left, 'goroutines left', must(rep.goroutines_left));
card(rep.lost_updates, 'registers that lost updates, unchecked');
card(rep.stale_writes_refused, 'stale writes refused');
card(round(100 * rep.availability, 3) + ' %', 'availability with a majority up', rep.availability < 1 && rep.inside_assumptions ? 'bad' : '');
card(round(rep.recovery_ms_max, 0) + ' ms', 'longest recovery');
card(round(rep.outage_ms_max, 0) + ' ms', 'longest outage');
card(round(rep.latency_ms.p50, 1) + ' ms', 'latency, median');
card(round(rep.latency_ms.p99, 1) + ' ms', 'latency, p99');
card(rep.unexpected_errors, 'unexpected errors', rep.unexpected_errors ? 'bad' : '');
$('seed').textContent = rep.seed;
$('replay').textContent = rep.replay;

function violations(id, list) {
  if (!list || !list.length) return;
  $(id).hidden = false;
  const body = $(id).querySelector('tbody');
  list.slice(0, 200).forEach(v => {
    const row = el('tr'), show = el('button', 'show');
    show.type = 'button';
    show.onclick = () => { focus(v); $('timeline').scrollIntoView({ block: 'center' }); };
    const cell = el('td');
    cell.append(show);
    row.append(cell, el('td', v.oracle, 'num'), el('td', time(v.at / 1000), 'num'), el('td', v.text));
    body.append(row);
  });
  if (list.length > 200) body.append(el('tr', (list.length - 200) + ' more are in report.json'));
}
violations('violations', rep.violations);
violations('allowed', rep.allowed);
const fired = $('faults').querySelector('tbody');
const names = new Set([...Object.keys(rep.faults || {}), ...Object.keys(rep.unavailable || {})]);
[...names].sort().forEach(name => {
  const row = el('tr');
  const why = (rep.unavailable || {})[name];
  row.append(el('td', name), el('td', (rep.faults || {})[name] || 0, 'num'), el('td', why ? 'not available: ' + why : (rep.observed || {})[name] || ''));
  fired.append(row);
});
if (!names.size) fired.append(el('tr', 'none'));
const notes = [...(rep.notes || []), ...(rep.errors || []).map(e => 'unexpected error: ' + e)];
if (notes.length) {
  $('notes').hidden = false;
  notes.forEach(n => $('notes').querySelector('ul').append(el('li', n)));
}
[['wait', () => css('--soft'), 'waiting'], ['hold', () => HUES[0], 'holding (a colour for each client)'],
  ['failed', () => css('--bad'), 'attempt failed, or violation'], ['fault', () => css('--band'), 'fault'], ['lost', () => css('--lost'), 'client without a majority']].forEach(([, colour, text]) => {
  const span = el('span'), i = el('i');
  i.style.background = colour();
  span.append(i, text);
  $('legend').append(span);
});

// --- the timeline ---
const STILL = 'the machine stood still'; // drawn as a fault is: what was late then says nothing about the lock
(data.stalls || []).forEach(s => data.faults.push([s[0], s[1], STILL, s[2]]));
const broken = new Map(); // attempt id -> violation text
[...(rep.violations || []), ...(rep.allowed || [])].forEach(v => (v.attempts || []).forEach(id => broken.has(id) || broken.set(id, v.oracle + ': ' + v.text)));
const byKey = data.keys.map(() => []);
data.attempts.forEach(a => byKey[a[KEY]].push(a));
const busiest = data.keys.map((_, k) => k).sort((a, b) => byKey[b].length - byKey[a].length);
const choose = $('keys');
if (data.keys.length > 1) choose.append(new Option('the ' + Math.min(3, data.keys.length) + ' busiest', '-1'));
busiest.forEach(k => choose.append(new Option(data.keys[k] + ' (' + byKey[k].length + ')', k)));

const LEFT = 128, TOP = 22, LANE = 17, HEAD = 20, RIGHT = 12;
let from = 0, to = data.end, lanes = [], height = 0;

function layout() {
  const shown = choose.value === '-1' ? busiest.slice(0, 3) : [Number(choose.value)].filter(k => data.keys[k] !== undefined);
  lanes = [];
  let y = TOP;
  if (data.faults.length) {
    lanes.push({ type: 'head', y, text: 'Faults' });
    y += HEAD;
    [...new Set(data.faults.map(f => f[2]))].forEach(name => { lanes.push({ type: 'fault', y, text: name }); y += LANE; });
    y += 6;
  }
  shown.forEach(k => {
    lanes.push({ type: 'head', y, text: data.keys[k] });
    y += HEAD;
    for (let c = 0; c < rep.clients; c++) {
      const mine = byKey[k].filter(a => a[CLIENT] === c);
      lanes.push({ type: 'client', y, text: 'client ' + c, client: c, attempts: mine });
      y += LANE;
    }
    y += 6;
  });
  lanes.push({ type: 'head', y, text: data.keys.length ? 'Masters: who holds ' + data.watched : 'Masters' });
  y += HEAD;
  for (let m = 0; m < rep.masters; m++) {
    lanes.push({ type: 'master', y, text: 'master ' + m, samples: data.samples.filter(s => s[1] === m) });
    y += LANE;
  }
  height = y + 8;
}

function surface(canvas, h) {
  const w = canvas.clientWidth, ratio = window.devicePixelRatio || 1;
  canvas.style.height = h + 'px';
  canvas.width = Math.round(w * ratio);
  canvas.height = Math.round(h * ratio);
  const g = canvas.getContext('2d');
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, w, h);
  g.font = '12px system-ui, sans-serif';
  return [g, w];
}
let width = 0;
const x = t => LEFT + (t - from) / (to - from) * (width - LEFT - RIGHT);
const at = px => from + (px - LEFT) / (width - LEFT - RIGHT) * (to - from);
const clip = px => Math.max(LEFT, Math.min(width - RIGHT, px));

function axis(g, w, h) {
  const span = to - from, about = span / Math.max(2, (w - LEFT) / 110);
  const unit = Math.pow(10, Math.floor(Math.log10(about)));
  const step = [1, 2, 5, 10].map(n => n * unit).find(s => s >= about);
  g.strokeStyle = css('--line');
  g.fillStyle = css('--soft');
  g.textAlign = 'center';
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    g.beginPath(); g.moveTo(x(t), TOP - 6); g.lineTo(x(t), h); g.stroke();
    const digits = Math.max(0, -Math.floor(Math.log10(step / 1e6)));
    g.fillText((t / 1e6).toFixed(Math.min(6, digits)) + ' s', x(t), TOP - 9);
  }
  g.textAlign = 'left';
}

// bar draws a box that is at least a visible sliver; it returns false when it is outside the view.
function bar(g, a, b, y, h, colour) {
  if (b < from || a > to) return false;
  const l = clip(x(a)), r = clip(x(b));
  g.fillStyle = colour;
  g.fillRect(l, y, Math.max(1, r - l), h);
  return true;
}

function draw() {
  const canvas = $('timeline');
  let g;
  [g, width] = surface(canvas, height);
  data.faults.forEach(f => bar(g, f[0], f[1], TOP, height - TOP, css('--band')));
  axis(g, width, height);
  let drawn = 0;
  for (const lane of lanes) {
    g.fillStyle = lane.type === 'head' ? css('--ink') : css('--soft');
    g.font = (lane.type === 'head' ? '600 ' : '') + '12px system-ui, sans-serif';
    g.fillText(lane.text.length > 60 ? lane.text.slice(0, 59) + '…' : lane.text, lane.type === 'head' ? 2 : 12, lane.y + 13);
    if (lane.type === 'fault') data.faults.forEach(f => f[2] === lane.text && bar(g, f[0], f[1], lane.y + 3, LANE - 6, css('--odd')));
    if (lane.type === 'client') drawn += drawClient(g, lane);
    if (lane.type === 'master') drawMaster(g, lane);
  }
  $('range').textContent = time(from) + ' to ' + time(to);
  canvas.dataset.drawn = drawn;
}

function drawClient(g, lane) {
  data.lost.forEach(l => l[0] === lane.client && bar(g, l[1], l[2], lane.y, LANE, css('--lost')));
  let n = 0;
  const soft = css('--soft'), bad = css('--bad');
  for (const a of lane.attempts) {
    const failed = a[OUTCOME] > 2 && a[OUTCOME] !== 5;
    bar(g, a[CALL], a[RETURN], lane.y + 7, 3, failed ? bad : soft + '88') && n++;
    if (a[OUTCOME] !== 1) continue;
    if (a[END] < a[RETURN]) continue;
    const held = Math.min(a[END], a[UNTIL]);
    bar(g, a[RETURN], held, lane.y + 3, LANE - 6, hue(lane.client) + (a[KIND] === 2 ? 'aa' : ''));
    if (broken.has(a[ID]) && a[RETURN] <= to && held >= from) {
      g.strokeStyle = bad; g.lineWidth = 2;
      g.strokeRect(clip(x(a[RETURN])) - 1, lane.y + 1, Math.max(3, clip(x(held)) - clip(x(a[RETURN])) + 2), LANE - 2);
      g.lineWidth = 1;
    }
  }
  return n;
}

function drawMaster(g, lane) {
  const bad = css('--bad');
  lane.samples.forEach((s, i) => {
    const end = i + 1 < lane.samples.length ? lane.samples[i + 1][0] : s[0] + 1e5;
    if (!s[2]) bar(g, s[0], end, lane.y + 6, 5, bad);
    else if (s[3] >= 0) bar(g, s[0], end, lane.y + 3, LANE - 6, hue(s[3]));
    else if (s[3] === -2) bar(g, s[0], end, lane.y + 3, LANE - 6, css('--soft'));
  });
}

// --- latency ---
function drawLatency() {
  const H = 190, BASE = H - 22;
  const [g, w] = surface($('latency'), H);
  const points = data.attempts.filter(a => a[OUTCOME] !== 0);
  let lo = Infinity, hi = 1;
  points.forEach(a => { const d = Math.max(1, a[RETURN] - a[CALL]); lo = Math.min(lo, d); hi = Math.max(hi, d); });
  lo = Math.max(50, Math.min(lo, hi / 10));
  const y = d => BASE - (Math.log(Math.max(d, lo)) - Math.log(lo)) / (Math.log(hi) - Math.log(lo) || 1) * (BASE - TOP - 6);
  data.faults.forEach(f => bar(g, f[0], f[1], TOP, BASE - TOP, css('--band')));
  axis(g, w, BASE);
  g.fillStyle = css('--soft');
  for (let d = Math.pow(10, Math.ceil(Math.log10(lo))); d <= hi; d *= 10) {
    g.fillText(time(d), 8, y(d) + 4);
    g.fillStyle = css('--line'); g.fillRect(LEFT, y(d), w - LEFT - RIGHT, 1); g.fillStyle = css('--soft');
  }
  for (const a of points) {
    if (a[RETURN] < from || a[RETURN] > to) continue;
    g.fillStyle = a[OUTCOME] === 1 ? hue(a[CLIENT]) : a[OUTCOME] === 2 || a[OUTCOME] === 5 ? css('--soft') + '66' : css('--bad');
    g.fillRect(x(a[RETURN]) - 1.5, y(a[RETURN] - a[CALL]) - 1.5, 3, 3);
  }
  g.fillStyle = css('--soft');
  g.fillText('coloured: acquired; grey: refused or cancelled; red: failed', LEFT, H - 5);
}

function redraw() { draw(); drawVotes(); drawLatency(); }

// --- moving about ---
function view(a, b) {
  const span = Math.max(200, Math.min(b - a, data.end));
  from = Math.max(0, Math.min(a, data.end - span));
  to = from + span;
  redraw();
}
function zoom(by, centre) {
  const c = centre === undefined ? (from + to) / 2 : centre;
  view(c - (c - from) * by, c + (to - c) * by);
}
function focus(v) {
  const ids = new Set(v.attempts || []);
  const hit = data.attempts.filter(a => ids.has(a[ID]));
  if (hit.length && choose.value !== '-1') { choose.value = hit[0][KEY]; layout(); }
  if (hit.length && !busiest.slice(0, 3).includes(hit[0][KEY])) { choose.value = hit[0][KEY]; layout(); }
  const t = v.at / 1000;
  const reach = hit.reduce((m, a) => Math.max(m, Math.abs(t - a[RETURN]), Math.abs(Math.min(a[END], a[UNTIL]) - t)), 2e4);
  view(t - reach * 1.3, t + reach * 1.3);
}
$('in').onclick = () => zoom(0.5);
$('out').onclick = () => zoom(2);
$('all').onclick = () => view(0, data.end);
choose.onchange = () => { layout(); redraw(); };
for (const canvas of [$('timeline'), $('ballots'), $('latency')]) {
  let drag = null;
  canvas.addEventListener('wheel', e => {
    e.preventDefault();
    if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) { const d = e.deltaX / (width - LEFT) * (to - from); view(from + d, to + d); } else zoom(Math.exp(e.deltaY / 400), at(e.offsetX));
  }, { passive: false });
  canvas.addEventListener('pointerdown', e => { drag = { x: e.clientX, from, to }; canvas.setPointerCapture(e.pointerId); canvas.style.cursor = 'grabbing'; });
  canvas.addEventListener('pointerup', () => { drag = null; canvas.style.cursor = ''; });
  canvas.addEventListener('pointermove', e => {
    if (drag) { const d = (drag.x - e.clientX) / (width - LEFT - RIGHT) * (drag.to - drag.from); view(drag.from + d, drag.to + d); return; }
    if (canvas.id === 'timeline') hover(e);
    if (canvas.id === 'ballots') tell(e, describeVotes(e));
  });
  canvas.addEventListener('pointerleave', () => { $('tip').style.display = 'none'; });
  canvas.addEventListener('dblclick', () => view(0, data.end));
}
$('timeline').addEventListener('keydown', e => {
  const d = (to - from) / 10;
  const act = { ArrowLeft: () => view(from - d, to - d), ArrowRight: () => view(from + d, to + d), '+': () => zoom(0.5), '=': () => zoom(0.5), '-': () => zoom(2), '0': () => view(0, data.end) }[e.key];
  if (act) { e.preventDefault(); act(); }
});

function hover(e) {
  const t = at(e.offsetX), slack = (to - from) / (width - LEFT) * 3;
  const lane = lanes.find(l => e.offsetY >= l.y && e.offsetY < l.y + LANE);
  let text = '';
  if (lane && lane.type === 'client') {
    const hits = lane.attempts.filter(a => a[CALL] <= t + slack && Math.max(a[RETURN], a[OUTCOME] === 1 ? a[END] : 0) >= t - slack);
    const a = hits.find(a => a[OUTCOME] === 1 && a[RETURN] <= t + slack) || hits[0];
    if (a) text = describe(a);
  } else if (lane && lane.type === 'fault') {
    const f = data.faults.find(f => f[2] === lane.text && f[0] <= t + slack && f[1] >= t - slack);
    if (f) text = f[3] + '\n' + time(f[0]) + ' to ' + time(f[1]);
  } else if (lane && lane.type === 'master') {
    const s = lane.samples.filter(s => s[0] <= t).pop();
    if (s) text = lane.text + ' at ' + time(s[0]) + ': ' + (!s[2] ? 'no answer' : s[3] >= 0 ? 'client ' + s[3] + ' holds it' : s[3] === -2 ? 'somebody holds it' : 'free');
  }
  tell(e, text);
}
function tell(e, text) {
  const tip = $('tip');
  tip.style.display = text ? 'block' : 'none';
  tip.textContent = text;
  tip.style.left = Math.min(e.clientX + 14, innerWidth - 400) + 'px';
  tip.style.top = e.clientY + 16 + 'px';
}
function describe(a) {
  let s = 'client ' + a[CLIENT] + ', attempt ' + a[ID] + ', ' + KINDS[a[KIND]] + '\n' + OUTCOMES[a[OUTCOME]] + ' after ' + time(a[RETURN] - a[CALL]) + ', asked at ' + time(a[CALL]);
  if (a[OUTCOME] === 1) {
    s += '\nheld from ' + time(a[RETURN]) + ' for ' + time(Math.max(0, Math.min(a[END], a[UNTIL]) - a[RETURN])) + ', bound ' + time(a[UNTIL]);
    if (a[TOKEN]) s += '\ntoken ' + a[TOKEN];
    s += '\nowner ' + a[OWNER];
  }
  return broken.has(a[ID]) ? s + '\n\n' + broken.get(a[ID]) : s;
}

layout();
showVotes();
redraw();
addEventListener('resize', redraw);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
document.body.dataset.ready = data.attempts.length;
