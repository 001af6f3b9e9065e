// --- a violation from near: the attempts, the votes for them, and what each master had ---
const letter = n => 'ABCD'[n];
let near = null; // the close-up that is shown

function violationOf(c) { return (c.list === 'violations' ? rep.violations : rep.allowed)[c.index]; }

// reveal shows a violation from near, or in the timeline if it has no close-up.
function reveal(list, index, v) {
  const n = data.closeups.findIndex(c => c.list === list && c.index === index);
  if (n >= 0) {
    chooseCloseup(n);
    $('why').scrollIntoView({ block: 'start' });
    return;
  }
  focus(v);
  $('timeline').scrollIntoView({ block: 'center' });
}

function chooseCloseup(n) {
  if (!data.closeups.length) return;
  const which = $('which');
  if (!which.options.length) {
    data.closeups.forEach((c, i) => {
      const v = violationOf(c);
      which.append(new Option(tidy(v.at / 1000) + ' ' + v.oracle + (c.list === 'allowed' ? ' (allowed here)' : ''), i));
    });
    which.onchange = () => chooseCloseup(Number(which.value));
    $('there').onclick = () => { focus(violationOf(near)); $('timeline').scrollIntoView({ block: 'center' }); };
  }
  $('why').hidden = false;
  which.value = n;
  near = data.closeups[n];
  $('closewhat').textContent = violationOf(near).oracle + ': ' + violationOf(near).text;
  explain();
  drawCloseup();
}

// explain writes what the picture shows as text and as a table.
function explain() {
  const text = $('closetext'), table = $('closetable'), names = near.holds.map((h, n) => letter(n) + ' (client ' + h.client + ')');
  text.textContent = '';
  near.holds.forEach((h, n) => {
    const p = el('p');
    p.style.borderColor = hue(h.client);
    p.append(el('b', letter(n) + ' '), h.text);
    text.append(p);
  });
  if (!near.told) text.append(el('p', 'This lock does not tell its masters’ votes; what the masters had is what the harness saw when it asked them.', 'soft'));
  if (!near.looked) text.append(el('p', 'The harness does not ask the masters for this key.', 'soft'));
  const head = table.tHead, body = table.tBodies[0];
  head.textContent = body.textContent = '';
  const titles = el('tr');
  ['', ...names.map(n => (near.told ? 'its vote for ' + n + ', and what it had then' : 'what it had when ' + n + ' got the key')), 'faults on it until then'].forEach(t => titles.append(el('th', t)));
  head.append(titles);
  near.masters.forEach((m, i) => {
    const row = el('tr');
    ['master ' + i, ...m.cells.map(c => c || '–'), m.faults || '–'].forEach(t => row.append(el('td', t)));
    body.append(row);
  });
  const votes = near.told ? [['var(--line)', 'each line is a request, from the beginning of its round to the vote; → extension, ↓ release'], ['var(--good)', '✓ granted'], ['var(--soft)', '✗ refused'], ['var(--bad)', '? no answer']] : [];
  legend('closelegend', [...near.holds.map((h, n) => [hue(h.client), names[n] + ' holds']), ['var(--bad)', 'outlined: both at a time; thin: master without an answer'],
    ...votes, ['var(--hit)', 'hit by a fault'], ['var(--still)', 'the machine stood still']]);
}

function drawCloseup() {
  if (!near) return;
  const kept = [from, to, width], SUB = 13, per = near.told ? LANE + near.holds.length * SUB + 6 : LANE + 4;
  const H = TOP + HEAD + near.holds.length * LANE + 6 + HEAD + near.masters.length * per + 8;
  let g;
  [g, width] = surface($('closeup'), H);
  [from, to] = [near.from, near.to];
  bands(g, TOP, H);
  axis(g, width, H);
  const label = (text, y, head) => {
    g.fillStyle = css(head ? '--ink' : '--soft');
    g.font = (head ? '600 ' : '') + '12px ' + FONT;
    g.fillText(text, head ? 2 : 12, y + 13, head ? width - 4 : LEFT - 16);
  };
  label(near.key, TOP, true);
  let y = TOP + HEAD;
  near.holds.forEach((h, n) => { label(letter(n) + ', client ' + h.client, y); drawHold(g, h, y); y += LANE; });
  overlapping(g, near.holds, TOP + HEAD, H);
  y += 6;
  label(near.told ? 'Masters: what each had, and its votes for ' + near.holds.map((_, n) => letter(n)).join(' and ') : 'Masters: what each had', y, true);
  y += HEAD;
  near.masters.forEach((m, i) => {
    label('master ' + i, y);
    drawMaster(g, m.states || [], i, y);
    faultNames(g, i, y);
    near.holds.forEach((_, n) => near.told && drawBallots(g, m, n, y + LANE + n * SUB, SUB));
    y += per;
  });
  $('closeup').dataset.near = near.masters.reduce((n, m) => n + (m.votes || []).length, 0);
  [from, to, width] = kept;
}

function drawHold(g, h, y) {
  data.faults.forEach(f => f.clients.includes(h.client) && bar(g, f.from, f.to, y, LANE, css('--hit')));
  bar(g, h.call, h.return, y + 7, 3, css('--wait'));
  if (h.end > h.return) bar(g, h.return, h.end, y + 3, LANE - 6, hue(h.client));
}

// overlapping outlines the time that two holds share.
function overlapping(g, holds, y, bottom) {
  if (holds.length !== 2) return;
  const a = Math.max(holds[0].return, holds[1].return), b = Math.min(holds[0].end, holds[1].end);
  if (b <= a) return;
  holds.forEach((_, n) => outline(g, a, b, y + n * LANE, css('--bad')));
  g.strokeStyle = css('--bad');
  g.setLineDash([3, 3]);
  g.beginPath(); g.moveTo(x(a), y + 2 * LANE); g.lineTo(x(a), bottom); g.stroke();
  g.setLineDash([]);
}

function faultNames(g, master, y) {
  data.faults.filter(f => f.masters.includes(master) && f.to >= from && f.from <= to).forEach(f => {
    g.font = '11px ' + FONT;
    const l = Math.min(clip(x(f.from)), width - RIGHT - g.measureText(f.name).width - 8);
    g.fillStyle = css('--panel');
    g.fillRect(l + 1, y + 3, g.measureText(f.name).width + 6, LANE - 6);
    g.fillStyle = css('--odd');
    g.fillText(f.name, l + 4, y + 12.5);
  });
}

function drawBallots(g, m, n, y, h) {
  g.font = '11px ' + FONT;
  g.fillStyle = css('--soft');
  g.fillText(letter(n), LEFT - 12, y + 10);
  (m.votes || []).filter(v => v[0] === n).forEach(([, start, end, op, vote]) => {
    const colour = css(['--good', '--soft', '--bad'][vote]);
    bar(g, start, end, y + 6, 2, colour);
    if (end < from || end > to) return;
    g.fillStyle = colour;
    g.font = '700 11px ' + FONT;
    g.textAlign = 'center';
    g.fillText(op === 'release' ? '↓' : op === 'extend' ? '→' : '✓✗?'[vote], clip(x(end)) + 5, y + 10);
    g.textAlign = 'left';
  });
}

// contents lists the sections that are shown.
function contents() {
  document.querySelectorAll('section').forEach(s => {
    if (s.hidden) return;
    const a = el('a', s.querySelector('h2').textContent);
    a.setAttribute('href', '#' + s.id);
    $('contents').append(a);
  });
}

