// Adds new events at the top of the page of events, and keeps relative times true.

// The server's clock may differ from the browser's.
const ahead = root => Number(root.dataset.now) - Date.now();
let difference = ahead(document.documentElement);
// As the server writes them.
const relative = at => {
  const ms = at - Date.now() - difference;
  const seconds = Math.floor(Math.abs(ms) / 1000);
  if (seconds === 0) return "now";
  const [count, unit] = seconds < 60 ? [seconds, "s"]
    : seconds < 3600 ? [seconds / 60, "min"]
      : seconds < 172800 ? [seconds / 3600, "h"] : [seconds / 86400, "days"];
  return ms > 0 ? `in ${Math.floor(count)} ${unit}` : `${Math.floor(count)} ${unit} ago`;
};
setInterval(() => {
  for (const time of document.querySelectorAll("time[title]:not(.after)")) {
    const text = relative(Date.parse(time.dateTime));
    if (time.textContent !== text) time.textContent = text;
  }
}, 5000);

const live = rows => {
  const status = document.querySelector("[role=status]");
  const max = Number(rows.dataset.rowsMax);
  const source = new EventSource(rows.dataset.live);
  let count = 0;
  let failure = "";
  // The browser reconnects by itself, and names the last event that it got.
  source.onerror = () => { status.textContent = `${failure || "The connection is lost"}. Trying again.` };
  source.onopen = () => { failure = ""; status.textContent = "New events appear by themselves." };
  // The connection ends after it.
  source.addEventListener("failed", ({ data }) => { failure = `New events can't be read: ${data}` });
  source.onmessage = ({ data }) => {
    const before = rows.rows.length;
    // The server has escaped the content of the rows.
    rows.insertAdjacentHTML("afterbegin", data);
    const added = rows.rows.length - before;
    for (const row of [...rows.rows].slice(0, added)) row.classList.add("new");
    while (rows.rows.length > max) rows.rows[rows.rows.length - 1].remove();
    count += added;
    if (added) status.textContent = `${count} new ${count === 1 ? "event" : "events"}.`;
  };
};

const rows = document.querySelector("[data-live]");
if (rows) live(rows);
