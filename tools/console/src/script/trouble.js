// Adds new failures at the top of the page of troubles.
const trouble = list => {
  const notices = new EventSource("/trouble/notices");
  // Each connection begins with the latest notices.
  notices.onopen = () => list.replaceChildren();
  notices.onmessage = ({ data }) => {
    const item = document.createElement("li");
    item.textContent = JSON.parse(data);
    list.prepend(item);
  };
};

const troubles = document.getElementById("trouble");
if (troubles) trouble(troubles);
