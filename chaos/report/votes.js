// --- votes: for each master [[granted, refused, unknown], ...], one for each bucket of time ---

// The kinds in the order in which they are stacked, with the names of their colours.
function voteKinds() { return [['granted', '--good'], ['refused', '--soft'], ['unknown', '--bad']]; }

function showVotes() {
  if (!data.votes) return;
  $('votes').hidden = false;
  legend('ballotkinds', voteKinds().map(([name, colour]) => ['var(' + colour + ')', name]));
}

// drawVotes stacks each master's votes in a row of its own; the rows have one scale.
function drawVotes() {
  if (!data.votes) return;
  const ROW = 46, H = TOP + data.votes.length * ROW + 4, canvas = $('ballots');
  const [g, w] = surface(canvas, H), colours = voteKinds().map(k => css(k[1]));
  const most = Math.max(1, ...data.votes.flatMap(over => over.map(n => n[0] + n[1] + n[2])));
  bands(g, TOP, H);
  axis(g, w, H);
  let drawn = 0;
  data.votes.forEach((over, m) => {
    const base = TOP + (m + 1) * ROW - 4;
    g.fillStyle = css('--soft');
    g.fillText('master ' + m, 12, base - ROW / 2 + 8);
    g.fillStyle = css('--line');
    g.fillRect(LEFT, base, w - LEFT - RIGHT, 1);
    over.forEach((n, b) => { drawn += stack(g, n, b, base, (ROW - 10) / most, colours); });
  });
  canvas.dataset.votes = drawn;
}

// stack draws the votes of one bucket and returns how many it drew.
function stack(g, n, b, base, scale, colours) {
  const l = b * data.vote_bucket, r = l + data.vote_bucket;
  if (r < from || l > to) return 0;
  const left = clip(x(l)), wide = Math.max(1, clip(x(r)) - left - 1);
  let y = base;
  n.forEach((count, i) => {
    g.fillStyle = colours[i];
    g.fillRect(left, y - count * scale, wide, count * scale);
    y -= count * scale;
  });
  return n[0] + n[1] + n[2];
}

function describeVotes(e) {
  const m = Math.floor((e.offsetY - TOP) / 46), b = Math.floor(at(e.offsetX) / data.vote_bucket);
  const n = e.offsetX >= LEFT && data.votes[m] && data.votes[m][b];
  if (!n) return '';
  return 'master ' + m + ', ' + time(b * data.vote_bucket) + ' to ' + time((b + 1) * data.vote_bucket) + '\n' +
    voteKinds().map(([name], i) => n[i] + ' ' + name).join(', ');
}
