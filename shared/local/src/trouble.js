// Shows trouble as it comes, what is kept, and the routes.
const of = id => document.getElementById(id);
const add = (parent, tag, text) => {
  const child = document.createElement(tag);
  child.textContent = text ?? "";
  parent.append(child);
  return child;
};
const json = path => fetch(path).then(answer => answer.json());
json("/trouble/routes").then(routes => {
  for (const route of routes) add(add(of("routes"), "li"), "code", route);
});
const kept = async () => {
  const { queues, buckets } = await json("/trouble/kept");
  const list = document.createElement("ul");
  for (const [queue, messages] of Object.entries(queues))
    for (const { Body, MessageAttributes } of messages)
      add(add(list, "li", `${queue}: ${MessageAttributes?.TARGET_ARN?.StringValue ?? ""} `), "code", Body);
  for (const urls of Object.values(buckets))
    for (const url of urls) add(add(list, "li"), "a", url).href = url;
  if (!list.children.length) add(list, "li", "Nothing, as expected.");
  of("kept").replaceChildren(...list.children);
};
const keep = () => kept().catch(() => {}).finally(() => setTimeout(keep, 2000));
keep();
const notices = new EventSource("/trouble/notices");
// After a broken connection the latest notices come again.
notices.onopen = () => of("trouble").replaceChildren();
notices.onmessage = ({ data }) => {
  const item = document.createElement("li");
  item.textContent = JSON.parse(data);
  of("trouble").prepend(item);
};
