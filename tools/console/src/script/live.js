// Adds new events at the top of the page of events.

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
