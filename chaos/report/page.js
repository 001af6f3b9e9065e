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
// One attempt: [client, key, kind, call, return, outcome, end, until, token, id, owner, worker]
const [CLIENT, KEY, KIND, CALL, RETURN, OUTCOME, END, UNTIL, TOKEN, ID, OWNER, WORKER] = Array(12).keys();

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
// tidy is a time in few digits, for an axis.
function tidy(us) { return us === 0 ? '0 s' : us >= 1e6 ? round(us / 1e6, 3) + ' s' : us >= 1e3 ? round(us / 1e3, 3) + ' ms' : round(us, 0) + ' µs'; }
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
const judged = rep.service || {};
card(round(100 * rep.availability, 3) + ' %', 'availability with a majority up' + (judged.total ? ', judged ' + judged.attempts + ' of ' + judged.total : ''), rep.availability < 1 && rep.inside_assumptions ? 'bad' : '');
card(round(rep.recovery_ms_max, 0) + ' ms', 'longest recovery');
card(round(rep.outage_ms_max, 0) + ' ms', 'longest outage');
card(round(rep.latency_ms.p50, 1) + ' ms', 'latency, median');
card(round(rep.latency_ms.p99, 1) + ' ms', 'latency, p99');
card(rep.unexpected_errors, 'unexpected errors', rep.unexpected_errors ? 'bad' : '');
$('seed').textContent = rep.seed;
$('replay').textContent = rep.replay;

// violations lists them, ten at first.
const FEW = 10, MOST = 200;
function violations(id, list) {
  if (!list || !list.length) return;
  $(id).hidden = false;
  const body = $(id).querySelector('tbody');
  const add = (v, i) => {
    const row = el('tr'), show = el('button', 'show');
    show.type = 'button';
    show.onclick = () => reveal(id, i, v);
    const cell = el('td');
    cell.append(show);
    row.append(cell, el('td', v.oracle, 'num'), el('td', tidy(v.at / 1000), 'num'), el('td', v.text));
    body.append(row);
  };
  list.slice(0, FEW).forEach(add);
  if (list.length > FEW) {
    const more = el('button', 'show all ' + list.length);
    more.type = 'button';
    more.onclick = () => {
      more.remove();
      list.slice(FEW, MOST).forEach((v, i) => add(v, FEW + i));
      if (list.length > MOST) $(id).append(el('p', (list.length - MOST) + ' more are in report.json', 'soft'));
    };
    $(id).append(more);
  }
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
