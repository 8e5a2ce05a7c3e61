// Puts new events on top of the page as the server sends them. The server has escaped what is in them.
const rows = document.querySelector("[data-live]");
if (rows) {
  const status = document.querySelector("[data-status]");
  const max = Number(rows.dataset.rowsMax);
  const source = new EventSource(rows.dataset.live);
  let count = 0;
  // The browser connects again by itself, and names the last event that it got.
  source.onerror = () => { status.textContent = "The connection is lost. Trying again." };
  source.onopen = () => { status.textContent = "New events appear by themselves." };
  source.onmessage = ({ data }) => {
    const before = rows.rows.length;
    rows.insertAdjacentHTML("afterbegin", data);
    const added = rows.rows.length - before;
    for (const row of [...rows.rows].slice(0, added)) row.classList.add("new");
    while (rows.rows.length > max) rows.rows[rows.rows.length - 1].remove();
    count += added;
    if (added) status.textContent = `${count} new ${count === 1 ? "event" : "events"}.`;
  };
}
