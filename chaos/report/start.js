layout();
showVotes();
chooseCloseup(0);
contents();
redraw();
addEventListener('resize', redraw);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
document.body.dataset.ready = data.attempts.length;
