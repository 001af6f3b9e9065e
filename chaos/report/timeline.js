// --- the timeline ---
const broken = new Map(); // attempt id -> violation text
[...(rep.violations || []), ...(rep.allowed || [])].forEach(v => (v.attempts || []).forEach(id => broken.has(id) || broken.set(id, v.oracle + ': ' + v.text)));
const byKey = data.keys.map(() => []);
data.attempts.forEach(a => byKey[a[KEY]].push(a));
const busiest = data.keys.map((_, k) => k).sort((a, b) => byKey[b].length - byKey[a].length);
const choose = $('keys');
if (data.keys.length > 1) choose.append(new Option('the ' + Math.min(3, data.keys.length) + ' busiest', '-1'));
busiest.forEach(k => choose.append(new Option(data.keys[k] + ' (' + byKey[k].length + ')', k)));

const TOP = 22, LANE = 17, HEAD = 20, RIGHT = 12, FONT = 'system-ui, -apple-system, "Segoe UI", sans-serif';
let LEFT = 128, from = 0, to = data.end, lanes = [], height = 0, width = 0;

// legend writes what the colours mean under a picture; kinds are [css colour, text].
function legend(id, kinds) {
  const box = $(id);
  box.textContent = '';
  kinds.forEach(([colour, text]) => {
    const span = el('span'), i = el('i');
    i.style.background = colour;
    span.append(i, text);
    box.append(span);
  });
}

// rows gives each span [from, to, ...] the first row in which it does not meet another one.
function rows(spans, end) {
  const ends = [];
  return spans.map(s => {
    let n = ends.findIndex(e => e <= s[0]);
    if (n < 0) n = ends.length;
    ends[n] = end(s);
    return n;
  });
}

function layout() {
  const shown = choose.value === '-1' ? busiest.slice(0, 3) : [Number(choose.value)].filter(k => data.keys[k] !== undefined);
  lanes = [];
  let y = TOP;
  const head = text => { lanes.push({ type: 'head', y, text }); y += HEAD; };
  const row = lane => { lanes.push({ y, ...lane }); y += LANE; };
  if (data.faults.length || data.stalls.length) head('Faults, and whom they hit');
  [...new Set(data.faults.map(f => f.name))].forEach(name => {
    const all = data.faults.filter(f => f.name === name).sort((a, b) => a.from - b.from);
    const at = rows(all.map(f => [f.from, f.to]), s => s[1]);
    for (let n = 0; n <= Math.max(...at); n++) row({ type: 'fault', text: n ? '' : name, faults: all.filter((_, i) => at[i] === n) });
  });
  if (data.stalls.length) row({ type: 'stall', text: 'stalls' });
  if (data.faults.length || data.stalls.length) y += 6;
  shown.forEach(k => { head(data.keys[k]); workers(byKey[k]).forEach(row); y += 6; });
  head(data.watched ? 'Masters: who holds ' + data.watched : 'Masters');
  for (let m = 0; m < rep.masters; m++) row({ type: 'master', text: 'master ' + m, master: m, states: data.states.filter(s => s[0] === m) });
  height = y + 8;
}

// workers are the lanes of a key's attempts: one for each worker, or more where its attempts overlap, because a history that something
// else recorded does not tell its workers.
function workers(attempts) {
  const out = [];
  for (let c = 0; c < rep.clients; c++) {
    const mine = attempts.filter(a => a[CLIENT] === c);
    if (!mine.length) out.push({ type: 'client', text: 'client ' + c, client: c, attempts: [] });
    [...new Set(mine.map(a => a[WORKER]))].sort((a, b) => a - b).forEach(w => {
      const own = mine.filter(a => a[WORKER] === w), at = rows(own.map(a => [a[CALL], Math.max(a[RETURN], a[OUTCOME] === 1 ? a[END] : 0)]), s => s[1]);
      for (let n = 0; n <= Math.max(...at); n++) out.push({ type: 'client', client: c, attempts: own.filter((_, i) => at[i] === n) });
    });
  }
  out.forEach((l, i) => { l.text = i && out[i - 1].client === l.client ? '' : 'client ' + l.client; });
  return out;
}

function surface(canvas, h) {
  const w = canvas.clientWidth, ratio = window.devicePixelRatio || 1;
  canvas.style.height = h + 'px';
  canvas.width = Math.round(w * ratio);
  canvas.height = Math.round(h * ratio);
  const g = canvas.getContext('2d');
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, w, h);
  g.font = '12px ' + FONT;
  LEFT = w < 640 ? 92 : 128;
  return [g, w];
}
const x = t => LEFT + (t - from) / (to - from) * (width - LEFT - RIGHT);
const at = px => from + (px - LEFT) / (width - LEFT - RIGHT) * (to - from);
const clip = px => Math.max(LEFT, Math.min(width - RIGHT, px));

// axis draws the times of the view; label writes one.
function axis(g, w, h, label) {
  const span = to - from, about = span / Math.max(2, (w - LEFT) / 110);
  const unit = Math.pow(10, Math.floor(Math.log10(about)));
  const step = [1, 2, 5, 10].map(n => n * unit).find(s => s >= about);
  const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(step / 1e6))));
  g.strokeStyle = css('--line');
  g.fillStyle = css('--soft');
  g.textAlign = 'center';
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    g.beginPath(); g.moveTo(x(t), TOP - 6); g.lineTo(x(t), h); g.stroke();
    if (x(t) < w - 28) g.fillText((t / 1e6).toFixed(digits) + ' s', x(t), TOP - 9);
  }
  g.textAlign = 'left';
}

// bar draws a box that is at least a visible sliver; it returns false when it is outside the view.
function bar(g, a, b, y, h, colour) {
  if (b < from || a > to) return false;
  const l = clip(x(a)), r = clip(x(b));
  g.fillStyle = colour;
  g.fillRect(l, y, Math.max(1.5, r - l), h);
  return true;
}

// beside writes a text into its bar, or behind it if there is room before the next one; it is cut where that is not enough.
function beside(g, text, a, b, next, y) {
  if (!text || b < from || a > to) return;
  const l = clip(x(a)), r = clip(x(b)), room = (next === undefined ? width - RIGHT : clip(x(next))) - r - 8;
  g.font = '11px ' + FONT;
  const cut = space => {
    let s = text;
    while (s.length > 3 && g.measureText(s).width > space) s = s.slice(0, -2).trimEnd() + '…';
    return s.length > 3 || g.measureText(s).width <= space ? s : '';
  };
  const inside = g.measureText(text).width <= r - l - 8 || r - l > room;
  const s = cut(inside ? r - l - 8 : room);
  g.fillStyle = inside ? css('--on') : css('--ink');
  if (s) g.fillText(s, inside ? l + 4 : r + 4, y + 12.5);
  g.font = '12px ' + FONT;
}

// bands are the faults and stalls, behind everything.
function bands(g, top, bottom) {
  data.faults.forEach(f => bar(g, f.from, f.to, top, bottom - top, css('--band')));
  data.stalls.forEach(s => bar(g, s[0], s[1], top, bottom - top, css('--stillband')));
}

function draw() {
  const canvas = $('timeline');
  let g;
  [g, width] = surface(canvas, height);
  bands(g, TOP, height);
  axis(g, width, height);
  let drawn = 0;
  for (const lane of lanes) {
    const head = lane.type === 'head';
    g.fillStyle = head ? css('--ink') : css('--soft');
    g.font = (head ? '600 ' : '') + '12px ' + FONT;
    const text = head || lane.text.length < 19 ? lane.text : lane.text.slice(0, 18) + '…';
    g.fillText(text.length > 60 ? text.slice(0, 59) + '…' : text, head ? 2 : 12, lane.y + 13, head ? width - 4 : LEFT - 16);
    if (lane.type === 'fault') drawFaults(g, lane);
    if (lane.type === 'stall') drawStalls(g, lane);
    if (lane.type === 'client') drawn += drawClient(g, lane);
    if (lane.type === 'master') drawMaster(g, lane.states.map(s => s.slice(1)), lane.master, lane.y);
  }
  $('range').textContent = tidy(from) + ' to ' + tidy(to);
  canvas.dataset.drawn = drawn;
}

function drawFaults(g, lane) {
  lane.faults.forEach(f => bar(g, f.from, f.to, lane.y + 2, LANE - 4, css('--odd')));
  lane.faults.forEach((f, i) => beside(g, f.target || 'all', f.from, f.to, lane.faults[i + 1] && lane.faults[i + 1].from, lane.y));
}

function drawStalls(g, lane) {
  data.stalls.forEach(s => bar(g, s[0], s[1], lane.y + 2, LANE - 4, css('--still')));
  data.stalls.forEach((s, i) => beside(g, (s[2] || tidy(s[1] - s[0])).replace(' had to wait for ', ' '), s[0], s[1], data.stalls[i + 1] && data.stalls[i + 1][0], lane.y));
}

function drawClient(g, lane) {
  data.faults.forEach(f => f.clients.includes(lane.client) && bar(g, f.from, f.to, lane.y, LANE, css('--hit')));
  data.lost.forEach(l => (l[0] === lane.client || l[0] === -1) && bar(g, l[1], l[2], lane.y, LANE, css('--lost')));
  let n = 0;
  const soft = css('--wait'), bad = css('--bad');
  for (const a of lane.attempts) {
    const failed = a[OUTCOME] > 2 && a[OUTCOME] !== 5;
    bar(g, a[CALL], a[RETURN], lane.y + 7, 3, failed ? bad : soft) && n++;
    if (a[OUTCOME] !== 1 || a[END] < a[RETURN]) continue;
    const held = Math.min(a[END], a[UNTIL]);
    bar(g, a[RETURN], held, lane.y + 3, LANE - 6, hue(lane.client) + (a[KIND] === 2 ? 'aa' : ''));
    if (broken.has(a[ID]) && a[RETURN] <= to && held >= from) outline(g, a[RETURN], held, lane.y, bad);
  }
  return n;
}

function outline(g, a, b, y, colour) {
  g.strokeStyle = colour; g.lineWidth = 2;
  g.strokeRect(clip(x(a)) - 1, y + 1, Math.max(3, clip(x(b)) - clip(x(a)) + 2), LANE - 2);
  g.lineWidth = 1;
}

// drawMaster draws what a master had, [from, to, state], on what was done to it.
function drawMaster(g, states, master, y) {
  data.faults.forEach(f => f.masters.includes(master) && bar(g, f.from, f.to, y, LANE, css('--hit')));
  states.forEach(s => {
    if (s[2] === -3) bar(g, s[0], s[1], y + 6, 5, css('--bad'));
    else if (s[2] >= 0) bar(g, s[0], s[1], y + 3, LANE - 6, hue(s[2]));
    else if (s[2] === -2) bar(g, s[0], s[1], y + 3, LANE - 6, css('--soft'));
  });
}

legend('legend', [['var(--wait)', 'waiting'], ...[...Array(Math.min(rep.clients, HUES.length))].map((_, c) => [hue(c), 'client ' + c + ' holds']),
  ['var(--soft)', 'a value that no client has (on masters)'], ['var(--bad)', 'attempt failed; master without an answer; outlined: part of a violation'],
  ['var(--odd)', 'fault'], ['var(--hit)', 'hit by it'], ['var(--lost)', 'client without a majority'], ['var(--still)', 'the machine stood still']]);

// --- latency ---
function drawLatency() {
  const H = 190, BASE = H - 22;
  const [g, w] = surface($('latency'), H);
  const points = data.attempts.filter(a => a[OUTCOME] !== 0);
  let lo = Infinity, hi = 1;
  points.forEach(a => { const d = Math.max(1, a[RETURN] - a[CALL]); lo = Math.min(lo, d); hi = Math.max(hi, d); });
  lo = Math.max(50, Math.min(lo, hi / 10));
  const y = d => BASE - (Math.log(Math.max(d, lo)) - Math.log(lo)) / (Math.log(hi) - Math.log(lo) || 1) * (BASE - TOP - 6);
  bands(g, TOP, BASE);
  axis(g, w, BASE);
  g.fillStyle = css('--soft');
  for (let d = Math.pow(10, Math.ceil(Math.log10(lo))); d <= hi; d *= 10) {
    g.fillText(tidy(d), 12, y(d) + 4);
    g.fillStyle = css('--line'); g.fillRect(LEFT, y(d), w - LEFT - RIGHT, 1); g.fillStyle = css('--soft');
  }
  for (const a of points) {
    if (a[RETURN] < from || a[RETURN] > to) continue;
    g.fillStyle = a[OUTCOME] === 1 ? hue(a[CLIENT]) : a[OUTCOME] === 2 || a[OUTCOME] === 5 ? css('--wait') : css('--bad');
    g.fillRect(x(a[RETURN]) - 1.5, y(a[RETURN] - a[CALL]) - 1.5, 3, 3);
  }
}
legend('latencies', [[HUES[0], 'acquired (the colour of the client)'], ['var(--wait)', 'refused or cancelled'], ['var(--bad)', 'failed']]);

function redraw() { draw(); drawVotes(); drawLatency(); drawCloseup(); }

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
    const f = lane.faults.find(f => f.from <= t + slack && f.to >= t - slack);
    if (f) text = f.note + '\n' + time(f.from) + ' to ' + time(f.to) + (f.target ? '\n' + f.target : '');
  } else if (lane && lane.type === 'stall') {
    const s = data.stalls.find(s => s[0] <= t + slack && s[1] >= t - slack);
    if (s) text = s[2] + '\n' + time(s[0]) + ' to ' + time(s[1]);
  } else if (lane && lane.type === 'master') {
    const s = lane.states.find(s => s[1] <= t && t < s[2]);
    if (s) text = lane.text + ' from ' + time(s[1]) + ' to ' + time(s[2]) + ': ' + (s[3] === -3 ? 'no answer' : s[3] >= 0 ? 'client ' + s[3] + ' holds it' : s[3] === -2 ? 'somebody holds it' : 'free');
  }
  tell(e, text);
}
function tell(e, text) {
  const tip = $('tip');
  tip.style.display = text ? 'block' : 'none';
  tip.textContent = text;
  tip.style.left = Math.max(4, Math.min(e.clientX + 14, innerWidth - 400)) + 'px';
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

