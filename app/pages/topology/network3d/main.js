// Streamlit calls this with each message and each change of theme; the view stays between calls.

export default function ({ parentElement, data, setTriggerValue }) {
  const root = parentElement.querySelector(".network3d");
  if (!root || !data) return;
  const view = (root.view ??= new View(root));
  view.send = setTriggerValue;
  view.show(data).catch((error) => {
    view.say("The picture cannot be drawn: " + error.message);
    throw error;
  });
  return () => view.end();
}
