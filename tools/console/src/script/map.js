// Shows what a decision on the map reads, and plays the steps of a flow.

for (const map of document.querySelectorAll("svg.map")) {
  const text = map.parentElement.nextElementSibling;
  const show = ({ target }) => {
    const node = target.closest?.("[data-id]");
    const id = node?.dataset.id;
    const reads = node?.dataset.reads?.split(" ") ?? [];
    for (const other of map.querySelectorAll("[data-id]")) other.classList.toggle("read", reads.includes(other.dataset.id));
    for (const { dataset, classList } of map.querySelectorAll("[data-from]")) {
      classList.toggle("lit", id !== undefined && (dataset.from === id || dataset.to === id));
    }
    text.textContent = node?.querySelector("title").textContent ?? "";
  };
  map.addEventListener("pointerover", show);
  map.addEventListener("focusin", show);
}

const replay = document.querySelector("[data-replay]");
const next = replay?.querySelector("[rel=next]");
if (next && !matchMedia("(prefers-reduced-motion: reduce)").matches) {
  const play = () => location.assign(`${next.href}#play`);
  const isPlaying = location.hash === "#play";
  const timer = isPlaying && setTimeout(play, 1500);
  const button = document.createElement("button");
  button.textContent = isPlaying ? "Pause" : "Play";
  button.addEventListener("click", () => {
    if (button.textContent === "Play") return play();
    clearTimeout(timer);
    button.textContent = "Play";
  });
  replay.append(button);
}
