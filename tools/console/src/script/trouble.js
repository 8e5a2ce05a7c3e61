// Shows new failures on the page of troubles: it takes the list from the page itself.
const list = document.getElementById("trouble");
if (list) {
  const show = async () => {
    const page = new DOMParser().parseFromString(await (await fetch(location)).text(), "text/html");
    list.replaceChildren(...page.getElementById("trouble").childNodes);
  };
  // A connection that was lost may have missed some.
  Object.assign(new EventSource("/trouble/notices"), { onopen: show, onmessage: show });
}
