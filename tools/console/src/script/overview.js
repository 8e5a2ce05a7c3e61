// Keeps the verdict in the head and the overview current, while somebody looks at the page.
const text = async address => {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${answer.status}`);
  return answer.text();
};

// The server has escaped the content of both.
const head = async link => { link.innerHTML = await text(link.dataset.verdict) };
const overview = async part => {
  const page = new DOMParser().parseFromString(await text(location.href), "text/html");
  difference = ahead(page.documentElement);
  const next = page.getElementById(part.id);
  // A person who reads numbers or is at a link of this part goes on there.
  if (!next || part.querySelector("details[open]")) return;
  const at = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  part.replaceChildren(...next.childNodes);
  if (at) part.querySelector(`a[href="${CSS.escape(at)}"]`)?.focus();
};

const link = document.querySelector("[data-verdict]");
const part = document.querySelector("[data-refresh]");
// A look may take longer than the time to the next one. A page that nobody sees does not ask.
let looks = false;
const look = async () => {
  if (looks || document.hidden) return;
  looks = true;
  try {
    if (part) await overview(part);
    await head(link);
  } catch {
    link.textContent = "The console does not answer";
  }
  looks = false;
};
if (link) {
  if (!document.hidden) head(link).catch(() => {});
  document.addEventListener("visibilitychange", look);
  setInterval(look, part ? 15000 : 60000);
}
