// Leads to Perfetto's page with the file of a run's timeline. The address of that is whole, as the page wants it, and made
// here, for the server need not know by which name it is reached.

const said = new URLSearchParams(location.search),
  run = said.get("run") ?? "";
said.delete("run");
const file = new URL(`../api/runs/${encodeURIComponent(run)}/timeline/perfetto?${said}`, location.href);
localStorage.setItem("cookieAck", "true"); // else it says that cookies of others are set: they are refused here
location.replace(`./#!/?url=${encodeURIComponent(file.href)}`);
